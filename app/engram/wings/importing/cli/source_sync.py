"""A source whose documents are brought in step with it."""

import functools
import io
import tempfile
from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, cast

from engram.cli.http_client import Client, ClientError
from engram.cli.ingest_commands import ingest_stream, is_complete, list_rejected_lines
from engram.cli.terminal import complain, say, say_json
from engram.core.text.words import count_noun
from engram.wings.importing.cli import mass_deletion
from engram.wings.importing.cli.chosen_readers import ChosenReaders, ReadersOptions
from engram.wings.importing.cli.collection_documents import (
    change_document,
    compare_documents,
    delete_document,
    list_documents,
)
from engram.wings.importing.cli.document_lines import (
    DocumentLines,
    complain_left_out,
    complain_unreadable,
)

if TYPE_CHECKING:
    from engram.wings.importing.conversion.folder import Listing, SourceFile
    from engram.wings.importing.sources.source import Source


@dataclass
class SyncReport:
    """The work of a run, by the names of documents.

    Attributes:
        missing: documents that the source has no longer, which the next run deletes unless they are back.
    """

    files: int
    uploaded: list[str] = field(default_factory=list)
    moved: list[dict[str, str]] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    is_good: bool = True

    def describe(self) -> str:
        """One line for people."""
        counts: dict[str, Sized] = {
            "uploaded": self.uploaded,
            "moved": self.moved,
            "changed": self.changed,
            "deleted": self.deleted,
            "missing": self.missing,
            "failed": self.failed,
        }
        done = [f"{len(names)} {name}" for name, names in counts.items() if names]
        return f"{count_noun(self.files, 'file')}: {', '.join(done) or 'all in step'}"

    def has_changes(self) -> bool:
        """Whether the run changed or missed anything."""
        return not self.is_good or bool(self.uploaded or self.moved or self.changed or self.deleted or self.missing)

    def list_steps(self) -> list[str]:
        """A line for each document."""
        return [
            *(f"upload: {name}" for name in self.uploaded),
            *(f"move: {move['before']} -> {move['source']}" for move in self.moved),
            *(f"change readers or folder: {name}" for name in self.changed),
            *(f"delete: {name}" for name in self.deleted),
            *(f"delete in the next run: {name}" for name in self.missing),
        ]

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "is_good"}


@dataclass
class FolderComparison:
    """A folder's documents, as the service compares them with those of a collection.

    Attributes:
        documents: fields ``documents`` of the request: all that the folder has.
    """

    source: "Source"
    folder: str
    collection: str
    documents: list[dict[str, Any]]

    def run(self, client: Client) -> dict[str, Any]:
        """Ask for the steps; all documents are new to a collection that does not exist yet.

        Documents that a folder with an earlier name no longer has become this folder's, so that they are named or
        deleted now or later.
        """
        steps, earlier_names = self._ask(client)
        if earlier_names:
            for source in [*steps["delete"], *(move["before"] for move in steps["moved"])]:
                change_document(client, self.collection, source, {"folder": self.folder})
        return steps

    def look(self, client: Client) -> dict[str, Any]:
        """Like ``run``; nothing is changed."""
        return self._ask(client)[0]

    def _ask(self, client: Client) -> tuple[dict[str, Any], list[str]]:
        """The steps, and the names that the folder had before."""
        missing = [] if self.source.missing_folder is None else [self.source.missing_folder]
        try:
            steps = compare_documents(client, self.collection, self.folder, self.documents, missing)
            earlier = self.source.choose_earlier_names(steps["folders"])
            if earlier:
                steps = compare_documents(
                    client, self.collection, self.folder, self.documents, [*missing, *earlier]
                )
        except ClientError as error:
            if error.extra.get("status_code") != HTTPStatus.NOT_FOUND:
                raise
            new = sorted(one["source"] for one in self.documents if one["digest"] is not None)
            return {"upload": new, "moved": [], "changed": [], "delete": []}, []
        return steps, earlier


@dataclass(frozen=True)
class _Comparison:
    """A source as it was listed in a run, and what the collection has of it.

    Attributes:
        claims: document -> what rules say of its version.
    """

    listed: "Listing"
    readers: ChosenReaders
    claims: Mapping[str, Mapping[str, str]]
    documents: FolderComparison
    missing_before: Collection[str]

    @functools.cached_property
    def files(self) -> Mapping[str, "SourceFile"]:
        """The files by the names of their documents."""
        return {file.name: file for file in self.listed.sources}

    @functools.cached_property
    def digests(self) -> Mapping[str, str | None]:
        """Versions by the names of documents; None: the file cannot be read."""
        return {one["source"]: one["digest"] for one in self.documents.documents}

    @property
    def is_whole(self) -> bool:
        """Whether the source was listed whole and all of its files can be read."""
        return None not in self.digests.values() and not self.listed.unreadable

    def part_missing(self, missing: Sequence[str]) -> tuple[list[str], list[str]]:
        """Part documents to delete from those that are missing for the first time."""
        if self.documents.source.missing_folder is None:
            return list(missing), []
        now = [name for name in missing if name in self.missing_before]
        return now, [name for name in missing if name not in self.missing_before]


@dataclass
class SourceSync:
    """Brings the documents of a source in step; may run again and again.

    Attributes:
        readers: of the command.
        quiet: whether results are printed as JSON only.
        allow_mass_deletion: whether many documents may be deleted without a question.
        strict: whether a file fails whose passages differ from its plain text.
        versions: a file of rules of versions.
        may_ask: whether somebody may be there to answer one.
    """

    source: "Source"
    collection: str
    prefix: str
    readers: ReadersOptions
    size: int
    overlap: int
    encoder: str | None
    quiet: bool
    allow_mass_deletion: bool = False
    may_ask: bool = True
    strict: bool = False
    versions: Path | None = None

    def say(self, report: SyncReport) -> None:
        """Print what a run did."""
        if self.quiet:
            say_json(report.as_json())
        else:
            say(report.describe())

    def plan(self, client: Client) -> SyncReport:
        """Return what a run would do; nothing is changed. Whether a file can be read shows only when it is.

        Raises:
            ClientError, InvalidRequestError: as ``run``.
        """
        comparison, report = self._compare(client)
        steps = comparison.documents.look(client)
        report.uploaded, report.changed = steps["upload"], steps["changed"]
        report.moved = [{"before": move["before"], "source": move["source"]} for move in steps["moved"]]
        report.deleted, report.missing = comparison.part_missing(steps["delete"])
        report.is_good &= not report.failed
        return report

    def run(self, client: Client) -> SyncReport:
        """Bring the documents in step, once.

        Raises:
            ClientError: the service refused something or could not be reached. What was done stays.
            InvalidRequestError: the source cannot be listed, has nothing to import, or has rules of readers that
                cannot be read.
        """
        comparison, report = self._compare(client)
        steps = comparison.documents.run(client)
        is_listed = not comparison.listed.unreadable  # else a document may be missing from the list alone
        renamed = self._move(client, steps["moved"] if is_listed else [], comparison, report)
        for name in steps["changed"]:
            change_document(client, self.collection, name, self._describe(name, comparison))
            report.changed.append(name)
        uploads = sorted([*steps["upload"], *renamed.values()])
        if uploads:
            with tempfile.TemporaryFile() as lines:
                missing = {before: comparison.digests[name] for before, name in renamed.items()}
                if is_listed:
                    missing |= dict.fromkeys(steps["delete"])
                self._upload(client, lines, uploads, comparison, missing, report)
            if report.jobs:  # some of those to delete were renamed
                steps = comparison.documents.run(client)
                self._complain_unseen(client, set(report.uploaded) & set(steps["upload"]))
        report.moved = [move for move in report.moved if move["source"] not in report.failed]
        report.is_good &= not report.failed
        self._delete(client, steps["delete"], comparison, report)
        return report

    def _compare(self, client: Client) -> tuple[_Comparison, SyncReport]:
        """List the source and find the versions of its files; the report names those that cannot be read."""
        from engram.wings.importing.conversion.folder import check_names
        from engram.wings.importing.conversion.version_rules import VersionRules, seal_version, unseal_version

        list_known = functools.cache(
            lambda: [
                replace(one, digest=one.digest and unseal_version(one.digest))
                for one in list_documents(client, self.collection)
            ]
        )
        rules = VersionRules() if self.versions is None else VersionRules.read(self.versions)
        listed = self.source.list_files(self.prefix, list_known)
        complain_left_out(listed)
        check_names(listed.sources)
        readers = ChosenReaders.prepare(self.readers, listed.sources, self.source, listed.list_left_out())
        readers = readers.close_new(client, self.collection, listed.sources)
        names = {file.name for file in listed.sources}
        rules.check(names)
        claims = {name: rules.find(name, names) for name in names}
        versions = {file.name: self._find_digest(file) for file in listed.sources}
        digests = {name: version and seal_version(version, claims[name]) for name, version in versions.items()}
        report = SyncReport(len(digests), failed=sorted(name for name, digest in digests.items() if digest is None))
        report.is_good = not listed.unreadable and not listed.twins
        manifest = [
            {"source": file.name, "digest": digests[file.name], **readers.find(file)} for file in listed.sources
        ]
        missing_folder = self.source.missing_folder
        missing = {one.source for one in list_known() if one.folder == missing_folder} if missing_folder else set()
        documents = FolderComparison(self.source, self.source.name, self.collection, manifest)
        return _Comparison(listed, readers, claims, documents, missing), report

    def _find_digest(self, file: "SourceFile") -> str | None:
        """Version of a file; None, and a line, if it cannot be read."""
        try:
            return self.source.find_digest(file)
        except OSError as error:
            complain_unreadable(file, error)
            return None

    def _move(
        self, client: Client, moves: list[dict[str, Any]], comparison: _Comparison, report: SyncReport
    ) -> dict[str, str]:
        """Move documents whose files would be read alike; return those to read again: before -> name.

        The ending of a file's name says how it is read, and the name may be its title.
        """
        renamed: dict[str, str] = {}
        for move in moves:
            before, name = move["before"], move["source"]
            is_called_alike = before.rpartition("/")[2] == name.rpartition("/")[2] or (
                PurePosixPath(before).suffix.lower() == PurePosixPath(name).suffix.lower()
                and move["titled_by_name"] is False
            )
            if is_called_alike and not self.source.reads_moved:
                change = {"source": name, **self._describe(name, comparison)}
                change_document(client, self.collection, before, change)
            else:
                renamed[before] = name
            report.moved.append({"before": before, "source": name})
        return renamed

    def _describe(self, name: str, comparison: _Comparison) -> dict[str, Any]:
        file = comparison.files[name]
        return {"folder": file.folder, **comparison.readers.find(file)}

    def _upload(
        self,
        client: Client,
        lines: IO[bytes],
        names: Sequence[str],
        comparison: _Comparison,
        missing: Mapping[str, str | None],
        report: SyncReport,
    ) -> None:
        """Read and ingest files.

        Args:
            missing: documents that may have become one of them -> version of the file, if that is known.
        """
        from engram.wings.importing.conversion.converter import Converter
        from engram.wings.importing.conversion.import_limits import PATIENT

        with Converter(PATIENT) as converter:
            cut = self.size, self.overlap
            documents = DocumentLines(
                lines,
                self.source,
                converter,
                comparison.readers,
                *cut,
                strict=self.strict,
                claims=comparison.claims,
            )
            for name in names:
                documents.write(comparison.files[name])
        report.failed = sorted({*report.failed, *documents.failed})
        if not documents.sources:
            return
        for source, digest in missing.items():
            documents.write_missing(source, digest)
        lines.seek(0)
        stream = cast(io.BufferedIOBase, lines)
        job = ingest_stream(
            client,
            stream,
            "sync",
            self.collection,
            quiet=self.quiet,
            encoder=self.encoder,
            documents=documents.written_for,
        )
        report.jobs.append(job)
        rejected = list_rejected_lines(client, self.collection, job)
        report.failed = sorted({*report.failed, *(documents.written_for[line - 1] for line in rejected)})
        moved = {move["source"] for move in report.moved}
        report.uploaded = sorted(documents.sources - moved - {*report.failed})
        report.is_good &= is_complete(job)

    def _complain_unseen(self, client: Client, still_missing: Collection[str]) -> None:
        """Say of which documents, of those that were sent and seem missing still, the key sees nothing."""
        from engram.wings.importing.conversion.notes import list_names

        known = {one.source for one in list_documents(client, self.collection)} if still_missing else set()
        if unseen := [name for name in still_missing if name not in known]:
            complain(
                f"not seen by this key, so sent by each run and never deleted: {list_names(sorted(unseen))}. "
                "Take a key with `admin` on the collection, or with their readers as --principal"
            )

    def _delete(self, client: Client, missing: Sequence[str], comparison: _Comparison, report: SyncReport) -> None:
        """Delete documents, unless something before went wrong that may concern them."""
        if not missing:
            return
        if not comparison.is_whole or not all(map(is_complete, report.jobs)):
            reason = "its job did not succeed" if comparison.is_whole else "not all files can be read"
            count = count_noun(len(missing), "document")
            complain(f"nothing is deleted, because {reason}; no longer in the folder: {count}")
            return
        deleted, report.missing = comparison.part_missing(missing)
        for source in report.missing:
            change_document(client, self.collection, source, {"folder": self.source.missing_folder})
        allowed, may_ask = self.allow_mass_deletion, self.may_ask
        if not mass_deletion.confirm(len(deleted), report.files, allowed=allowed, may_ask=may_ask):
            report.is_good = False
            return
        for source in deleted:
            delete_document(client, self.collection, source)
            report.deleted.append(source)
