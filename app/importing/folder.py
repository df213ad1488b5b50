"""Files of a folder, and the passages that come of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.errors import InvalidRequestError
from app.importing import chunks, formats, tables
from app.importing.documents import Passage

TABLES = (".csv", ".tsv")
KINDS = (*formats.READERS, *TABLES)


@dataclass(frozen=True)
class Source:
    """A file to read, and what its passages are named after.

    Attributes:
        name: the folder's name and the way from there, with slashes; of a file that was named itself, its name.
    """

    path: Path
    name: str


@dataclass(frozen=True)
class Found:
    """What there is to import.

    Attributes:
        sources: in order, each once.
        others: names of files of other kinds, which are left alone.
        folders: names of the folders looked through.
    """

    sources: tuple[Source, ...]
    others: tuple[str, ...]
    folders: tuple[str, ...]


def find(paths: Sequence[Path]) -> Found:
    """Files of kinds that can be read: those named, and all in the folders named, hidden ones aside.

    Raises:
        InvalidRequestError: a path is not there, a file named itself is of no known kind, or two have one name.
    """
    sources: list[Source] = []
    others: list[str] = []
    for path in paths:
        if not path.exists():
            raise InvalidRequestError(f"{path} is not there.")
        if path.is_file() and path.suffix.lower() not in KINDS:
            raise InvalidRequestError(f"{path} is of none of the kinds {', '.join(KINDS)}.")
        for source in _below(path):
            if source.path.suffix.lower() in KINDS:
                sources.append(source)
            else:
                others.append(source.name)
    named = {source.name for source in sources}
    if len(named) < len(sources):
        twice = next(name for name in sorted(named) if sum(source.name == name for source in sources) > 1)
        raise InvalidRequestError(
            f"Two of these would be called {twice!r}: import them into collections of their own."
        )
    folders = tuple(path.resolve().name for path in paths if path.is_dir())
    return Found(tuple(sources), tuple(others), folders)


def passages(source: Source, *, size: int, overlap: int) -> Iterator[Passage]:
    """The passages of one file.

    Raises:
        UnreadableError: it is not what its name says, or holds no text.
        OSError: it cannot be read.
        ValueError: as ``chunks.passages``.
    """
    data = source.path.read_bytes()
    kind = source.path.suffix.lower()
    if kind in TABLES:
        return tables.passages(source.name, formats.decoded(source.name, data))
    return chunks.passages(formats.READERS[kind](source.name, data), size=size, overlap=overlap)


def _below(path: Path) -> Iterator[Source]:
    if path.is_file():
        yield Source(path, path.name)
        return
    top = path.resolve()
    for found in sorted(top.rglob("*")):
        way = found.relative_to(top)
        if found.is_file() and not any(part.startswith(".") for part in way.parts):
            yield Source(found, f"{top.name}/{way.as_posix()}")
