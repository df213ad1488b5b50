"""Choose who may read what is imported."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from engram.cli.http_client import Client
from engram.cli.terminal import complain
from engram.context.errors import InvalidRequestError
from engram.wings.importing.cli.collection_documents import count_restricted, list_documents

if TYPE_CHECKING:
    from engram.wings.importing.conversion.folder import SourceFile
    from engram.wings.importing.conversion.reader_rules import ReaderRules, ReadersOf

Field = dict[str, list[str] | None]


@dataclass(frozen=True)
class ChosenReaders:
    """The readers of what is imported: as rules files say, else as the command says.

    Attributes:
        given: by the command.
        closed: names of new documents that nobody may read, as nothing says who may.
    """

    given: "ReadersOf | None"
    rules: "ReaderRules"
    closed: frozenset[str] = frozenset()

    @classmethod
    def prepare(cls, option: str | None, files: Sequence["SourceFile"]) -> "ChosenReaders":
        """Read the option and the rules, and say which files below rules no rule matches.

        Raises:
            InvalidRequestError: the option or a rules file cannot be read.
        """
        from engram.wings.importing.conversion.notes import list_some
        from engram.wings.importing.conversion.reader_rules import FILE, ReaderRules, parse_readers

        try:
            given = None if option is None else parse_readers(option)
        except ValueError as error:
            raise InvalidRequestError(f"--readers: {error}.") from error
        rules = ReaderRules.read([file.path for file in files])
        unruled = [file.name for file in files if rules.is_unruled(file.path)]
        if unruled:
            default = "nobody" if option is None else option
            complain(f"read by {default}, as no line of {FILE} names them: {list_some(unruled)}")
        return cls(given, rules)

    def close_new(self, client: Client, collection: str, files: Sequence["SourceFile"]) -> "ChosenReaders":
        """Close files that are new to a folder whose documents have readers, while nothing says who may read them.

        So a lost rules file publishes nothing. Documents that the caller cannot see are not counted.
        """
        open_files = [file for file in files if not self.find(file)]
        known = list_documents(client, collection) if open_files else []
        sources = {one.source for one in known}
        fresh = [file for file in open_files if file.name not in sources]
        by_folder: dict[str | None, list[SourceFile]] = {}
        for file in fresh:
            by_folder.setdefault(file.folder or _find_folder(file, {one.folder for one in known}), []).append(file)
        closed: set[str] = set()
        for folder, new in by_folder.items():
            names = {file.name for file in open_files if file.folder == folder}
            related = [one for one in known if one.digest and (one.folder == folder or one.source in names)]
            folders = {one.folder for one in related if one.folder is not None}
            restricted = sum(
                count_restricted(client, collection, name, [one for one in related if one.folder == name])
                for name in folders
            )
            if restricted:
                complain(
                    f"{len(new)} new files of {folder} are read by nobody: {restricted} of its documents have "
                    "readers, and nothing says who may read these. Give --readers, or rules."
                )
                closed |= {file.name for file in new}
        return replace(self, closed=frozenset(closed))

    def find(self, file: "SourceFile") -> Field:
        """Return field ``readers`` of a document, if anything is said of it."""
        from engram.wings.importing.conversion.reader_rules import ReadersOf

        chosen = self.rules.find(file.path, self.given or ReadersOf(())) or self.given
        if chosen is None:
            return {}
        return {"readers": None if chosen.readers is None else list(chosen.readers)}

    def find_for_writing(self, file: "SourceFile") -> Field:
        """Like ``find``, with an empty list for a closed document."""
        return {"readers": []} if file.name in self.closed else self.find(file)


def _find_folder(file: "SourceFile", folders: set[str | None]) -> str | None:
    """The innermost imported folder that a file lies in which was named itself."""
    path = file.path.resolve()
    above = [folder for folder in folders if folder is not None and path.is_relative_to(Path(folder))]
    return max(above, key=len, default=None)
