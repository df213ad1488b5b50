"""Readers of a folder's documents, as a file in the folder names them."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from engram.context.errors import InvalidRequestError
from engram.core.auth.reader_names import normalise_readers
from engram.wings.importing.conversion.folder import escape_name

FILE = ".engram-readers"
"""Lies in the imported folder. A line is ``PATTERN: READERS``; of the lines that match a file, the last counts.

A pattern is of a path below the folder, where ``*`` stands for any characters, slashes too. Readers have commas
between them; ``everyone`` and ``nobody`` stand alone. Empty lines and those that begin with ``#`` say nothing.
"""
EVERYONE, NOBODY = "everyone", "nobody"


@dataclass(frozen=True, slots=True)
class ReadersOf:
    """Readers that a rule gives; None: everyone."""

    readers: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class ReaderRules:
    """Rules of one folder."""

    folder: Path
    rules: tuple[tuple[str, ReadersOf], ...]

    def find(self, path: Path) -> ReadersOf | None:
        """Return the readers of a file in the folder; None: no rule speaks of it."""
        below = escape_name(path.relative_to(self.folder).as_posix())
        return next((given for pattern, given in reversed(self.rules) if fnmatchcase(below, pattern)), None)


def read_rules(folder: Path) -> ReaderRules:
    """Read the rules of a folder; none if it has no such file.

    Raises:
        InvalidRequestError: the file cannot be read, or a line of it is no rule.
    """
    path = folder / FILE
    if not path.exists():
        return ReaderRules(folder, ())
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"{path}: cannot be read: {error}.") from error
    rules = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        pattern, separator, readers = line.partition(": ")
        if not separator or not pattern.strip():
            raise InvalidRequestError(f"{path}, line {number}: is not `PATTERN: READERS`.")
        try:
            rules.append((pattern.strip(), parse_readers(readers)))
        except ValueError as error:
            raise InvalidRequestError(f"{path}, line {number}: {error}.") from error
    return ReaderRules(folder, tuple(rules))


def parse_readers(text: str) -> ReadersOf:
    """Read readers with commas between them, or ``everyone`` or ``nobody``.

    Raises:
        ValueError: one is no name.
    """
    named = text.strip()
    if named == EVERYONE:
        return ReadersOf(None)
    if named == NOBODY:
        return ReadersOf(())
    return ReadersOf(normalise_readers(part.strip() for part in named.split(",")))
