"""Choose who may read what is imported."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from engram.cli.http_client import Client
from engram.cli.terminal import complain
from engram.context.errors import InvalidRequestError
from engram.core.auth.reader_names import NOBODY, parse_readers
from engram.core.text.words import count_noun
from engram.wings.importing.cli.collection_documents import count_restricted, list_documents

if TYPE_CHECKING:
    from engram.wings.importing.conversion.folder import SourceFile
    from engram.wings.importing.conversion.reader_rules import ReaderRules, ReadersOf
    from engram.wings.importing.sources.source import Source

Field = dict[str, list[str] | None]


class DefaultReaders(StrEnum):
    """Readers of a document that no rule names."""

    NOBODY = "nobody"
    EVERYONE = "everyone"


@dataclass(frozen=True)
class ReadersOptions:
    """Options of a command about readers.

    Attributes:
        readers: names, or the path of a manifest.
        default: of documents that neither a rule nor the manifest names.
    """

    readers: str | None = None
    default: DefaultReaders | None = None

    def read(self) -> "tuple[ReadersOf | None, dict[str, ReadersOf] | None]":
        """Return the given readers and the manifest; at most one of them is there.

        Raises:
            InvalidRequestError: the readers are neither names nor a manifest, or the default is missing or one too
                many.
        """
        from engram.wings.importing.conversion.reader_rules import ReadersOf
        from engram.wings.importing.sources.readers_manifest import read_manifest

        if self.readers is None:
            return None, None
        try:
            chosen = ReadersOf(parse_readers(self.readers))
        except ValueError as error:
            if not Path(self.readers).is_file():
                raise InvalidRequestError(f"--readers: {error}.") from error
            if self.default is None:
                raise InvalidRequestError(
                    f"Who reads what {self.readers} does not name? Give --default-readers nobody, or everyone."
                ) from error
            return None, read_manifest(Path(self.readers))
        if self.default is not None:
            raise InvalidRequestError("--default-readers is for a manifest or rules; --readers names them here.")
        return chosen, None


@dataclass(frozen=True)
class ChosenReaders:
    """The readers of what is imported: as rules files and a manifest say, else as the command says.

    Attributes:
        given: by the command for all documents that no rule names.
        rules: of rules files.
        default: of documents that neither a rule nor the manifest names.
        manifest: document -> readers; None: there is none.
        closed: names of new documents that nobody may read, as nothing says who may.
        targets: document of a link -> document of the file that it leads to.
    """

    given: "ReadersOf | None"
    rules: "ReaderRules"
    default: "ReadersOf"
    manifest: "Mapping[str, ReadersOf] | None" = None
    closed: frozenset[str] = frozenset()
    targets: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def prepare(
        cls,
        options: ReadersOptions,
        files: Sequence["SourceFile"],
        source: "Source",
        left_out: Set[str] = frozenset(),
    ) -> "ChosenReaders":
        """Read the options and the rules, and say which files none of them names.

        Args:
            left_out: names of files that make no document, which a manifest may name.

        Raises:
            InvalidRequestError: an option, the manifest or a rules file cannot be read, or the manifest names a
                document that is not there.
        """
        from engram.wings.importing.conversion.notes import list_names
        from engram.wings.importing.conversion.reader_rules import FILE, ReadersOf

        given, manifest = options.read()
        rules = source.read_rules(files)
        default = options.default or (options.readers if given is not None else None) or NOBODY
        unnamed = {FILE: {file.name for file in files if rules.is_unruled(file.path)}}
        if manifest is not None:
            names = {file.name for file in files}
            absent = sorted(manifest.keys() - names - left_out)
            if absent:
                raise InvalidRequestError(f"{options.readers} names what is not there: {list_names(absent)}.")
            unnamed[str(options.readers)] = names - manifest.keys()
        chosen = cls(given, rules, ReadersOf(parse_readers(default)), manifest, targets=_find_targets(rules, files))
        by_default = [file.name for file in files if chosen.find(file) == _describe(chosen.default)]
        for place, listed in unnamed.items():
            if names_by_default := [name for name in by_default if name in listed]:
                complain(f"read by {default}, as no line of {place} names them: {list_names(names_by_default)}")
        return chosen

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
                    f"read by nobody: {count_noun(len(new), 'new file')} of {folder}, as {restricted} of its "
                    "documents have readers, and nothing says who may read more. Give --readers, or rules."
                )
                closed |= {file.name for file in new}
        return replace(self, closed=frozenset(closed))

    def find(self, file: "SourceFile") -> Field:
        """Return field ``readers`` of a document, if anything is said of it."""
        chosen = self.rules.find(file.path, self.default)
        if self.manifest is not None:
            named = self.manifest.get(file.name, self.default)
            if file.name in self.targets:
                named = named.intersect(self.manifest.get(self.targets[file.name], self.default))
            chosen = named if chosen is None else named.intersect(chosen)
        chosen = chosen or self.given
        return {} if chosen is None else _describe(chosen)

    def find_for_writing(self, file: "SourceFile") -> Field:
        """Like ``find``, with an empty list for a closed document."""
        return {"readers": []} if file.name in self.closed else self.find(file)


def _describe(readers: "ReadersOf") -> Field:
    return {"readers": None if readers.readers is None else list(readers.readers)}


def _find_targets(rules: "ReaderRules", files: Sequence["SourceFile"]) -> dict[str, str]:
    documents = {rules.places[file.path][0]: file.name for file in files}
    leads = {file.name: rules.places[file.path][-1] for file in files}
    return {name: documents[place] for name, place in leads.items() if documents.get(place, name) != name}


def _find_folder(file: "SourceFile", folders: set[str | None]) -> str | None:
    """The innermost imported folder that a file lies in which was named itself."""
    path = file.path.resolve()
    above = [folder for folder in folders if folder is not None and path.is_relative_to(Path(folder).resolve())]
    return max(above, key=len, default=None)
