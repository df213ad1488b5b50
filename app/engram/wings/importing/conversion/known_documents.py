"""Documents that a collection has, and the one that a named file belongs to."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from engram.wings.importing.conversion.folder import SourceFile, escape_name


@dataclass(frozen=True)
class KnownDocument:
    """A document of the collection.

    Attributes:
        folder: the folder that it was imported from; None: it came by itself.
        digest: hash of its file, if the importer gave one.
    """

    source: str
    folder: str | None
    digest: str | None


def name_file(file: SourceFile, known: Sequence[KnownDocument]) -> str:
    """The name of the document that a file makes which was named itself.

    It is the name that the file has in the folder that it was imported from, if there is one. Else it is the
    longest end of the file's path that names a document, or the file's own name.
    """
    path = file.path.resolve()
    for folder in sorted({one.folder for one in known if one.folder}, key=len, reverse=True):
        top = Path(folder).resolve()
        if path.is_relative_to(top):
            prefix = _find_prefix(top, [one.source for one in known if one.folder == folder])
            return escape_name(f"{prefix}{path.relative_to(top).as_posix()}")
    elsewhere = {one.source for one in known if one.folder is None or not Path(one.folder).is_dir()}
    return next((name for name in _list_ends(escape_name(path.as_posix())) if name in elsewhere), file.name)


def _find_prefix(folder: Path, sources: Iterable[str]) -> str:
    """Find the prefix of a folder's documents: the part before a path that exists below the folder."""
    for source in sources:
        for end in _list_ends(source):
            if (folder / end).is_file():
                return source.removesuffix(end)
    return ""


def _list_ends(name: str) -> list[str]:
    """The name, and what it ends in after each slash, the longest first."""
    parts = PurePosixPath(name).parts
    return ["/".join(parts[at:]) for at in range(len(parts))]
