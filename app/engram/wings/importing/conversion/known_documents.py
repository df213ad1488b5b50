"""Documents that a collection has, compared with the files of an import."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from engram.wings.importing.conversion.folder import SourceFile, escape_name


@dataclass(frozen=True)
class KnownDocument:
    """A document of the collection.

    Attributes:
        folder: the folder that it was imported from; None: it came by itself.
    """

    source: str
    folder: str | None


@dataclass(frozen=True)
class Absence:
    """Documents that an import of folders does not have.

    Attributes:
        orphans: of the imported folders, under their present or an earlier path.
        strays: of folders that are gone and may be the earlier path of an imported one. They are orphans only if
            one of them turns out to have been renamed.
    """

    orphans: tuple[KnownDocument, ...]
    strays: tuple[KnownDocument, ...]


def name_file(file: SourceFile, known: Sequence[KnownDocument]) -> str:
    """The name of the document that a file makes which was named itself.

    It is the name that the file has in the folder that it was imported from, if there is one. Else it is the
    longest end of the file's path that names a document, or the file's own name.
    """
    path = file.path.resolve()
    for folder in sorted({one.folder for one in known if one.folder}, key=len, reverse=True):
        if path.is_relative_to(folder):
            prefix = _find_prefix(Path(folder), [one.source for one in known if one.folder == folder])
            return escape_name(f"{prefix}{path.relative_to(folder).as_posix()}")
    elsewhere = {one.source for one in known if one.folder is None or not Path(one.folder).is_dir()}
    return next((name for name in _list_ends(escape_name(path.as_posix())) if name in elsewhere), file.name)


def find_absent(known: Sequence[KnownDocument], imported: Mapping[str, str | None]) -> Absence:
    """Find documents that an import of folders does not have.

    Args:
        imported: name of each file -> its folder; None: it was named itself.
    """
    folders = {folder for folder in imported.values() if folder is not None}
    again = {one.folder for one in known if one.folder is not None and imported.get(one.source) is not None}
    own = folders | {folder for folder in again if not Path(folder).is_dir()}
    absent = [(one, one.folder) for one in known if one.folder is not None and one.source not in imported]
    return Absence(
        orphans=tuple(one for one, folder in absent if folder in own),
        strays=tuple(one for one, folder in absent if folder not in own and _may_be_earlier(folder, folders)),
    )


def _may_be_earlier(folder: str, folders: Iterable[str]) -> bool:
    """Whether a folder is gone and may now be one of the others: one with its name, or one beside it."""
    path, others = Path(folder), [Path(other) for other in folders]
    return not path.is_dir() and any(other.name == path.name or other.parent == path.parent for other in others)


def _find_prefix(folder: Path, sources: Iterable[str]) -> str:
    """What a folder's documents were given as a prefix: the part before a path that exists below the folder."""
    for source in sources:
        for end in _list_ends(source):
            if (folder / end).is_file():
                return source.removesuffix(end)
    return ""


def _list_ends(name: str) -> list[str]:
    """The name, and what it ends in after each slash, the longest first."""
    parts = PurePosixPath(name).parts
    return ["/".join(parts[at:]) for at in range(len(parts))]
