"""The files of folders that can be imported."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engram.context.errors import InvalidRequestError
from engram.wings.importing.conversion.formats import KINDS, find_kind


@dataclass(frozen=True)
class SourceFile:
    """A file to read.

    Attributes:
        name: the folder's name and the path from there, with slashes; of a file that was named itself, its name.
            Control characters and bytes that are not UTF-8 are written as ``%0A``.
    """

    path: Path
    name: str


@dataclass(frozen=True)
class Listing:
    """Files to import.

    Attributes:
        sources: in order, each once.
        others: names of files of other kinds.
        outside: names of symbolic links that lead out of their folder; they are not followed.
        folders: names of the folders that were searched.
    """

    sources: tuple[SourceFile, ...]
    others: tuple[str, ...]
    outside: tuple[str, ...]
    folders: tuple[str, ...]


def list_files(paths: Sequence[Path]) -> Listing:
    """List the named files and the files in the named folders, without hidden ones.

    A link to a file in the same folder is read as that file; a link to a folder is not entered.

    Raises:
        InvalidRequestError: a path does not exist, a named file is of no known kind, or two files get one name.
    """
    sources: list[SourceFile] = []
    others: list[str] = []
    outside: list[str] = []
    for path in paths:
        if not path.exists():
            raise InvalidRequestError(f"{escape_name(str(path))} is not there.")
        if path.is_file():
            if find_kind(path.name) not in KINDS:
                raise InvalidRequestError(f"{escape_name(str(path))} is of none of the kinds {', '.join(KINDS)}.")
            sources.append(SourceFile(path, escape_name(path.name)))
            continue
        for source, inside in _walk_folder(path):
            if not inside:
                outside.append(source.name)
            elif find_kind(source.name) in KINDS:
                sources.append(source)
            else:
                others.append(source.name)
    names = [source.name for source in sources]
    if len(set(names)) < len(names):
        twice = next(name for name in sorted(names) if names.count(name) > 1)
        raise InvalidRequestError(
            f"Two of these would be called {twice!r}: import them into collections of their own."
        )
    folders = tuple(escape_name(path.resolve().name) for path in paths if path.is_dir())
    return Listing(tuple(sources), tuple(others), tuple(outside), folders)


def escape_name(name: str) -> str:
    """The name without characters that a terminal, JSON or Postgres cannot take."""
    return "".join(f"%{ord(character) & 0xFF:02X}" if _is_odd(character) else character for character in name)


def _is_odd(character: str) -> bool:
    return ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 or 0xD800 <= ord(character) < 0xE000


def _walk_folder(folder: Path) -> Iterator[tuple[SourceFile, bool]]:
    """The files below a folder, and whether each really lies in it."""
    top = folder.resolve()
    for path in sorted(top.rglob("*")):
        relative = path.relative_to(top)
        if any(part.startswith((".", "~$")) for part in relative.parts):  # "~$": Office's mark of an open file
            continue
        name = escape_name(f"{top.name}/{relative.as_posix()}")
        inside = path.resolve().is_relative_to(top)
        if path.is_symlink() and not inside:
            yield SourceFile(path, name), False
        elif path.is_file():
            yield SourceFile(path, name), inside
