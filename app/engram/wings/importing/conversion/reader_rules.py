"""Readers of documents, as files in their folders name them."""

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engram.context.errors import InvalidRequestError
from engram.core.auth.reader_names import parse_readers
from engram.wings.importing.conversion.folder import escape_name, is_left_out
from engram.wings.importing.conversion.outline import library

FILE = ".engram-readers"
"""Lies in a folder and rules all below it. A line is ``PATTERN: READERS``; the last that matches counts.

A pattern is read as one of ``.gitignore``. Of several such files, the one deepest in the tree that matches counts.
Readers have commas between them; ``everyone`` and ``nobody`` stand alone. Empty lines and those that begin with
``#`` are skipped.
"""
_CATCH_ALL = {"*", "**", "/*", "/**"}
_LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class ReadersOf:
    """Readers that a rule gives; None: everyone."""

    readers: tuple[str, ...] | None

    def intersect(self, other: "ReadersOf") -> "ReadersOf":
        """Return those who are readers by both."""
        if self.readers is None or other.readers is None:
            return self if other.readers is None else other
        return ReadersOf(tuple(name for name in self.readers if name in other.readers))


@dataclass(frozen=True, slots=True)
class Rule:
    """A line of a rules file; ``matcher`` is its pattern as pathspec reads it."""

    line: int
    pattern: str
    matcher: Any
    readers: ReadersOf


@dataclass(frozen=True, slots=True)
class RulesFile:
    """The rules file of one folder."""

    folder: Path
    rules: tuple[Rule, ...]

    def find(self, path: Path) -> ReadersOf | None:
        """Return the readers of a file below the folder; None: no rule matches it."""
        rule = self._decide(escape_name(path.relative_to(self.folder).as_posix()))
        return None if rule is None else rule.readers

    def check(self, names: Sequence[str]) -> None:
        """Go on only if each rule decides for something that is there.

        Args:
            names: paths of all files and folders below the folder; those of folders end with a slash.

        Raises:
            InvalidRequestError: a rule matches nothing, or later lines match all that it matches.
        """
        deciding = {rule.line for name in names if (rule := self._decide(name)) is not None}
        for rule in self.rules:
            if rule.line in deciding:
                continue
            if not any(rule.matcher.match_file(name) for name in names):
                raise _build_error(self.folder, rule.line, f"{rule.pattern!r} matches no file of the folder")
            if rule.pattern not in _CATCH_ALL:
                raise _build_error(
                    self.folder,
                    rule.line,
                    f"later lines match all that {rule.pattern!r} matches; the last counts",
                )

    def _decide(self, name: str) -> Rule | None:
        return next((rule for rule in reversed(self.rules) if rule.matcher.match_file(name)), None)


@dataclass(frozen=True, slots=True)
class ReaderRules:
    """The rules files of some folders and of all folders above them.

    Attributes:
        files: by their folders.
        places: of each file: where it lies, and where the file lies that it leads to, if it is a link.
    """

    files: Mapping[Path, RulesFile]
    places: Mapping[Path, tuple[Path, ...]]

    @classmethod
    def read(cls, paths: Iterable[Path]) -> "ReaderRules":
        """Read the rules that may concern these files.

        Raises:
            InvalidRequestError: a rules file cannot be read, is misnamed, or has a line that is no rule or decides
                nothing.
        """
        places = _find_places(paths)
        above = {place.parent for listed in places.values() for place in listed}
        folders = {folder for one in above for folder in (one, *one.parents)}
        rules = (_read_file(folder) for folder in sorted(folders))
        files = {one.folder: one for one in rules if one is not None}
        for one in files.values():
            one.check(list(_walk_names(one.folder)))
        return cls(files, places)

    @classmethod
    def parse(cls, texts: Mapping[Path, bytes], names: Sequence[str], paths: Iterable[Path]) -> "ReaderRules":
        """Parse the rules files of a source that is no folder of this machine. Its top counts as ``/``.

        Args:
            texts: folder -> content of its rules file.
            names: as ``RulesFile.check``, below the top.
            paths: of the files that make documents.

        Raises:
            InvalidRequestError: as ``read``.
        """
        files = {folder: _parse_file(folder, text) for folder, text in texts.items()}
        for folder, one in files.items():
            above = f"{folder.as_posix()}/".lstrip("/")
            one.check([name.removeprefix(above) for name in names if name != above and name.startswith(above)])
        return cls(files, {path: (path,) for path in paths})

    def find(self, path: Path, default: ReadersOf) -> ReadersOf | None:
        """Return the readers of a file; None: neither its folder nor one above has rules.

        A link is read by those who may read both the link and the file that it leads to.

        Args:
            default: readers of a file below a rules file that no rule matches.
        """
        readers: ReadersOf | None = None
        for place in self.places[path]:
            files = self._list_files(place)
            if files:
                ruled = self._find_rule(place, files) or default
                readers = ruled if readers is None else readers.intersect(ruled)
        return readers

    def is_unruled(self, path: Path) -> bool:
        """Whether a file lies below a rules file and no rule matches it."""
        listed = [(place, self._list_files(place)) for place in self.places[path]]
        return any(files and self._find_rule(place, files) is None for place, files in listed)

    def _list_files(self, place: Path) -> list[RulesFile]:
        return [self.files[folder] for folder in place.parents if folder in self.files]

    @staticmethod
    def _find_rule(place: Path, files: Iterable[RulesFile]) -> ReadersOf | None:
        return next((readers for file in files if (readers := file.find(place)) is not None), None)


def _find_places(paths: Iterable[Path]) -> dict[Path, tuple[Path, ...]]:
    """Find where each file lies, and where the file lies that it leads to, if it is a link."""
    folders: dict[Path, Path] = {}
    places: dict[Path, tuple[Path, ...]] = {}
    for path in paths:
        if path.parent not in folders:
            folders[path.parent] = path.parent.resolve()
        place = folders[path.parent] / path.name
        places[path] = (place, place.resolve()) if place.is_symlink() else (place,)
    return places


def _read_file(folder: Path) -> RulesFile | None:
    """Read the rules file of a folder; None if it has none."""
    path = folder / FILE
    try:
        if not os.path.lexists(path):
            _check_misnamed(folder)
            return None
        if not path.is_file():
            raise InvalidRequestError(f"{path}: is no file that can be read.")
        data = path.read_bytes()
    except OSError as error:
        raise InvalidRequestError(f"{path}: cannot be read: {error}.") from error
    return _parse_file(folder, data)


def _parse_file(folder: Path, data: bytes) -> RulesFile:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidRequestError(f"{folder / FILE}: cannot be read: {error}.") from error
    rules = []
    for number, line in enumerate(_LINE_END.split(text), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            rules.append(_read_rule(folder, number, line))
    return RulesFile(folder, tuple(rules))


def _read_rule(folder: Path, number: int, line: str) -> Rule:
    pattern, separator, readers = line.partition(": ")
    pattern = unicodedata.normalize("NFC", pattern.strip())
    if not separator or not pattern:
        raise _build_error(folder, number, "is not `PATTERN: READERS`")
    try:
        matcher, given = library("pathspec").GitIgnoreSpec.from_lines([pattern]), ReadersOf(parse_readers(readers))
    except ValueError as error:
        raise _build_error(folder, number, str(error)) from error
    if [one.include for one in matcher.patterns] != [True]:
        raise _build_error(folder, number, f"{pattern!r} is no pattern of files")
    return Rule(number, pattern, matcher, given)


def _check_misnamed(folder: Path) -> None:
    """Refuse a file that is meant as a rules file and has another name, such as ``.engram-readers.txt``."""
    try:
        names = os.listdir(folder)
    except PermissionError:  # a folder above the imported ones: whether it has the file itself could be seen
        return
    for name in names:
        if (folder / name).is_file():
            check_rules_name(folder / name)


def check_rules_name(path: Path) -> None:
    """Refuse the name of a file that is meant as a rules file and would be none.

    Raises:
        InvalidRequestError: it is such a name.
    """
    name = path.name
    is_alike = re.sub(r"[\W_]", "", name).casefold().startswith("engramreaders")
    if is_alike and name != FILE and (name.startswith(".") or path.suffix in ("", ".txt")):
        raise InvalidRequestError(f"{escape_name(str(path))}: rules are in {FILE}. Rename it.")


def _walk_names(folder: Path) -> Iterator[str]:
    """Paths of all files and folders below a folder, without hidden ones; folders end with a slash."""
    for directory, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not is_left_out(name)]
        for name in (*(f"{name}/" for name in folders), *(name for name in names if not is_left_out(name))):
            yield escape_name(f"{Path(directory).relative_to(folder).as_posix()}/{name}".removeprefix("./"))


def _build_error(folder: Path, line: int, reason: str) -> InvalidRequestError:
    return InvalidRequestError(f"{escape_name(str(folder / FILE))}, line {line}: {reason}.")
