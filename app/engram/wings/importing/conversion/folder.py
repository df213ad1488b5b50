"""The files of folders that can be imported, and what their documents are called."""

import os
import unicodedata
from codecs import BOM_UTF8
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from engram.context.errors import InvalidRequestError
from engram.wings.importing.conversion.formats import KINDS, find_kind, is_lock_file, is_wanted

NAME_CHARACTERS = 400
"""Of the name of a document at most: passage ids begin with it and end at 512 characters."""
_BLANK_BYTES = 1_024
"""A file of more is no empty one, whatever it holds."""


@dataclass(frozen=True)
class SourceFile:
    """A file to read.

    Attributes:
        path: where it lies; of a file elsewhere: its path below the source, which counts as ``/``.
        name: the document's name: the prefix and the path below the imported folder, with slashes; of a file that
            was named itself, the prefix and its own name. See ``escape_name``.
        folder: the folder or address that was imported; None: the file was named itself.
    """

    path: Path
    name: str
    folder: str | None = None


@dataclass(frozen=True)
class Listing:
    """Files to import.

    Attributes:
        sources: in order, each once.
        others: names of files of other kinds.
        outside: names of symbolic links that lead out of their folder; they are not followed.
        unreadable: folders that could not be entered.
        locks: names of files that were named themselves and only mark a file that Office has open.
        empty: names of files without content; they make no document.
        twins: names of files that another file of the folder has too, as Unicode composes them; only one is read.
        hidden: names of hidden files that would make documents, and of hidden folders.
        links: names of links to a folder or to nothing.
        notes: what else is left out, a line each.
    """

    sources: tuple[SourceFile, ...]
    others: tuple[str, ...]
    outside: tuple[str, ...]
    unreadable: tuple[str, ...] = ()
    locks: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    twins: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def list_left_out(self) -> set[str]:
        """Return the names of files that are there and make no document."""
        return {*self.others, *self.outside, *self.locks, *self.empty, *self.twins, *self.hidden, *self.links}


def list_files(paths: Sequence[Path], prefix: str = "") -> Listing:
    """List the named files and the files in the named folders, without hidden ones.

    A link to a file in the same folder is read as that file; a link to a folder is not entered.

    Args:
        prefix: what all names begin with; a slash stands between it and the rest.

    Raises:
        InvalidRequestError: a path does not exist, or a named file is of no known kind.
    """
    prefix = f"{prefix.rstrip('/')}/" if prefix else ""
    sources: list[SourceFile] = []
    others: list[str] = []
    outside: list[str] = []
    unreadable: list[str] = []
    locks: list[str] = []
    empty: list[str] = []
    hidden: list[str] = []
    links: list[str] = []
    for path in paths:
        if not path.exists():
            raise InvalidRequestError(f"{escape_name(str(path))} is not there.")
        if path.is_file() and is_lock_file(path.name):
            locks.append(escape_name(path.name))
            continue
        if path.is_file():
            if find_kind(path.name) not in KINDS:
                raise InvalidRequestError(f"{escape_name(str(path))} is of none of the kinds {', '.join(KINDS)}.")
            if _is_empty(path):
                empty.append(escape_name(path.name))
            else:
                sources.append(SourceFile(path, escape_name(f"{prefix}{path.name}")))
            continue
        for source in _walk_folder(path, prefix, unreadable, hidden, outside, links):
            if is_wanted(source.name) and _is_empty(source.path):
                empty.append(source.name)
            elif is_wanted(source.name):
                sources.append(source)
            else:
                others.append(source.name)
    sources, twins = part_twins(sources)
    return Listing(
        tuple(sources),
        tuple(others),
        tuple(outside),
        tuple(unreadable),
        tuple(locks),
        tuple(empty),
        tuple(source.name for source in twins),
        tuple(hidden),
        tuple(links),
    )


def check_names(sources: Sequence[SourceFile]) -> None:
    """Go on only if each file makes a document of its own.

    Raises:
        InvalidRequestError: two files get one name.
    """
    names = [source.name for source in sources]
    if len(set(names)) < len(names):
        twice = next(name for name in sorted(names) if names.count(name) > 1)
        raise InvalidRequestError(
            f"Two of these would be called {twice!r}: import them one after the other, each with its own --prefix."
        )


def part_twins(sources: Sequence[SourceFile]) -> tuple[list[SourceFile], list[SourceFile]]:
    """Part the files from those of one folder that would make the same document; a composed name goes first."""
    chosen: dict[tuple[str | None, str], SourceFile] = {}
    twins: list[SourceFile] = []
    for source in sources:
        key = (source.folder, source.name if source.folder else str(source.path))
        other = chosen.get(key)
        if other is None:
            chosen[key] = source
        elif escape_name(str(source.path)) == str(source.path):
            chosen[key] = source
            twins.append(other)
        else:
            twins.append(source)
    return list(chosen.values()), twins


def escape_name(name: str) -> str:
    """The name as Unicode composes it (NFC), without characters that a terminal, JSON or Postgres cannot take.

    These are written as ``%0A``.
    """
    escaped = "".join(f"%{ord(character) & 0xFF:02X}" if _is_odd(character) else character for character in name)
    return unicodedata.normalize("NFC", escaped)


def _is_odd(character: str) -> bool:
    return ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 or 0xD800 <= ord(character) < 0xE000


def _is_empty(path: Path) -> bool:
    """Whether a file has nothing but white space; one that cannot be opened has not."""
    try:
        return path.stat().st_size <= _BLANK_BYTES and not path.read_bytes().removeprefix(BOM_UTF8).strip()
    except OSError:
        return False


def is_left_out(name: str) -> bool:
    """Whether a file or folder of this name is hidden, or marks a file that Office has open."""
    return name.startswith(".") or is_lock_file(name)


def name_hidden(path: Path, name: str, *, is_folder: bool) -> list[str]:
    """The name of a hidden folder, or of a hidden file that would make a document; else nothing."""
    if not path.name.startswith(".") or not (is_folder or find_kind(path.name) in KINDS):
        return []
    return [escape_name(f"{name}/" if is_folder else name)]


def _walk_folder(
    named: Path, prefix: str, unreadable: list[str], hidden: list[str], outside: list[str], links: list[str]
) -> Iterator[SourceFile]:
    """The files below a folder, and links to them.

    Args:
        named: the folder, or a link to it: documents keep the name of the link, wherever it leads later.
        unreadable: takes the folders that cannot be entered.
        hidden: takes what ``name_hidden`` names.
        outside, links: take the names of links that are not followed, see ``Listing``.
    """
    folder, top = escape_name(os.path.abspath(named)), named.resolve()
    paths: list[Path] = []
    for directory, folders, names in os.walk(
        top, onerror=lambda error: unreadable.append(escape_name(error.filename))
    ):
        for name in sorted(name for name in (*folders, *names) if name.startswith(".")):
            below = Path(directory, name).relative_to(top).as_posix()
            hidden += name_hidden(Path(name), f"{prefix}{below}", is_folder=name in folders)
        folders[:] = [name for name in folders if not is_left_out(name)]
        paths += (Path(directory, name) for name in (*folders, *names) if not is_left_out(name))
    for path in sorted(paths):
        source = SourceFile(path, escape_name(f"{prefix}{path.relative_to(top).as_posix()}"), folder)
        if path.is_symlink() and not path.resolve().is_relative_to(top):
            outside.append(source.name)
        elif path.is_file():
            yield source
        elif path.is_symlink():
            links.append(source.name)
