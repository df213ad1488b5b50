"""A folder whose documents are brought in step with it."""

import io
import tempfile
from collections.abc import Mapping, Sized
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from engram.cli.http_client import Client, ClientError
from engram.cli.ingest_commands import ingest_stream, is_complete
from engram.cli.terminal import complain, say, say_json
from engram.wings.importing.cli import mass_deletion
from engram.wings.importing.cli.chosen_readers import ChosenReaders
from engram.wings.importing.cli.collection_documents import change_document, compare_documents, delete_document
from engram.wings.importing.cli.document_lines import (
    DocumentLines,
    complain_left_out,
    complain_unreadable,
)

if TYPE_CHECKING:
    from engram.wings.importing.conversion.folder import Listing, SourceFile


@dataclass
class SyncReport:
    """The work of a run, by the names of documents."""

    files: int
    uploaded: list[str] = field(default_factory=list)
    moved: list[dict[str, str]] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
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
            "failed": self.failed,
        }
        done = [f"{len(names)} {name}" for name, names in counts.items() if names]
        return f"{self.files} files: {', '.join(done) or 'all in step'}"

    def has_changes(self) -> bool:
        """Whether the run changed or missed anything."""
        return not self.is_good or bool(self.uploaded or self.moved or self.changed or self.deleted)

    def list_steps(self) -> list[str]:
        """A line for each document."""
        return [
            *(f"upload: {name}" for name in self.uploaded),
            *(f"move: {move['before']} -> {move['source']}" for move in self.moved),
            *(f"change readers or folder: {name}" for name in self.changed),
            *(f"delete: {name}" for name in self.deleted),
        ]

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "is_good"}


@dataclass
class FolderComparison:
    """A folder's documents, as the service compares them with those of a collection.

    Attributes:
        documents: fields ``documents`` of the request: all that the folder has.
    """

    folder: str
    collection: str
    documents: list[dict[str, Any]]

    def run(self, client: Client) -> dict[str, Any]:
        """Ask for the steps; all documents are new to a collection that does not exist yet.

        Documents that a folder with an earlier name no longer has become this folder's, so that they are named or
        deleted now or later.
        """
        steps, earlier_folders = self._ask(client)
        if earlier_folders:
            for source in [*steps["delete"], *(move["before"] for move in steps["moved"])]:
                change_document(client, self.collection, source, {"folder": self.folder})
        return steps

    def look(self, client: Client) -> dict[str, Any]:
        """Like ``run``; nothing is changed."""
        return self._ask(client)[0]

    def _ask(self, client: Client) -> tuple[dict[str, Any], list[str]]:
        """The steps, and the names that the folder had before."""
        try:
            steps = compare_documents(client, self.collection, self.folder, self.documents)
            gone = [folder for folder in steps["folders"] if not Path(folder).is_dir()]
            if gone:
                steps = compare_documents(client, self.collection, self.folder, self.documents, gone)
        except ClientError as error:
            if error.extra.get("status_code") != HTTPStatus.NOT_FOUND:
                raise
            new = sorted(one["source"] for one in self.documents if one["digest"] is not None)
            return {"upload": new, "moved": [], "changed": [], "delete": []}, []
        return steps, gone


@dataclass
class FolderSync:
    """Brings the documents of a folder in step; may run again and again.

    Attributes:
        readers: of the command; None: it names none.
        quiet: whether results are printed as JSON only.
        allow_mass_deletion: whether many documents may be deleted without a question.
        strict: whether a file fails whose passages differ from its plain text.
        may_ask: whether somebody may be there to answer one.
    """

    folder: Path
    collection: str
    prefix: str
    readers: str | None
    size: int
    overlap: int
    encoder: str | None
    quiet: bool
    allow_mass_deletion: bool = False
    may_ask: bool = True
    strict: bool = False
    _digests: dict[Path, tuple[tuple[int, int], str]] = field(default_factory=dict)

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
        _, _, _, comparison, report = self._compare(client)
        steps = comparison.look(client)
        report.uploaded, report.changed, report.deleted = steps["upload"], steps["changed"], steps["delete"]
        report.moved = steps["moved"]
        report.is_good &= not report.failed
        return report

    def run(self, client: Client) -> SyncReport:
        """Bring the documents in step, once.

        Raises:
            ClientError: the service refused something or could not be reached. What was done stays.
            InvalidRequestError: the folder has nothing to import, or its rules of readers cannot be read.
        """
        listed, files, readers, comparison, report = self._compare(client)
        digests = {one["source"]: one["digest"] for one in comparison.documents}
        steps = comparison.run(client)
        renamed = self._move(client, steps["moved"], files, readers, report)
        for name in steps["changed"]:
            change_document(client, self.collection, name, self._describe(files[name], readers))
            report.changed.append(name)
        uploads = sorted([*steps["upload"], *renamed.values()])
        if uploads:
            with tempfile.TemporaryFile() as lines:
                missing = {before: digests[name] for before, name in renamed.items()}
                missing |= dict.fromkeys(steps["delete"])
                self._upload(client, lines, [files[name] for name in uploads], readers, missing, report)
            if report.jobs and (steps["delete"] or renamed):  # some of them were renamed
                steps = comparison.run(client)
        report.moved = [move for move in report.moved if move["source"] not in report.failed]
        report.is_good &= not report.failed
        self._delete(
            client, steps["delete"], report, is_whole=None not in digests.values() and not listed.unreadable
        )
        return report

    def _compare(
        self, client: Client
    ) -> tuple["Listing", dict[str, "SourceFile"], ChosenReaders, FolderComparison, SyncReport]:
        """List the folder and hash its files; the report names those that cannot be opened."""
        from engram.wings.importing.conversion.folder import check_names, escape_name, list_files

        listed = list_files([self.folder], self.prefix)
        complain_left_out(listed)
        check_names(listed.sources)
        readers = ChosenReaders.prepare(self.readers, listed.sources)
        readers = readers.close_new(client, self.collection, listed.sources)
        files = {file.name: file for file in listed.sources}
        digests = {name: self._hash(file) for name, file in files.items()}
        report = SyncReport(len(files), failed=sorted(name for name, digest in digests.items() if digest is None))
        report.is_good = not listed.unreadable and not listed.twins
        manifest = [{"source": name, "digest": digests[name], **readers.find(file)} for name, file in files.items()]
        return (
            listed,
            files,
            readers,
            FolderComparison(escape_name(str(self.folder)), self.collection, manifest),
            report,
        )

    def _hash(self, file: "SourceFile") -> str | None:
        """Hash of a file as an import stores it; None, and a line, if it cannot be read."""
        try:
            state = file.path.stat()
            version = (state.st_mtime_ns, state.st_size)
            known = self._digests.get(file.path)
            if known is not None and known[0] == version:
                return known[1]
            digest = hash_file(file.path)
        except OSError as error:
            complain_unreadable(file, error)
            return None
        self._digests[file.path] = (version, digest)
        return digest

    def _move(
        self,
        client: Client,
        moves: list[dict[str, str]],
        files: Mapping[str, "SourceFile"],
        readers: ChosenReaders,
        report: SyncReport,
    ) -> dict[str, str]:
        """Move documents whose files have their names still; return those to read again: before -> name.

        The name of a file says how it is read, and may be its title.
        """
        renamed: dict[str, str] = {}
        for move in moves:
            before, name = move["before"], move["source"]
            if before.rpartition("/")[2] == name.rpartition("/")[2]:
                change = {"source": name, **self._describe(files[name], readers)}
                change_document(client, self.collection, before, change)
            else:
                renamed[before] = name
            report.moved.append(move)
        return renamed

    def _describe(self, file: "SourceFile", readers: ChosenReaders) -> dict[str, Any]:
        return {"folder": file.folder, **readers.find(file)}

    def _upload(
        self,
        client: Client,
        lines: IO[bytes],
        files: list["SourceFile"],
        readers: ChosenReaders,
        missing: Mapping[str, str | None],
        report: SyncReport,
    ) -> None:
        """Read and ingest files.

        Args:
            missing: documents that may have become one of them -> digest of the file, if that is known.
        """
        from engram.wings.importing.conversion.converter import Converter
        from engram.wings.importing.conversion.import_limits import PATIENT

        with Converter(PATIENT) as converter:
            documents = DocumentLines(lines, converter, readers, self.size, self.overlap, strict=self.strict)
            for file in files:
                documents.write(file)
        report.failed = sorted({*report.failed, *documents.failed})
        if not documents.sources:
            return
        for source, digest in missing.items():
            documents.write_missing(source, digest)
        lines.seek(0)
        stream = cast(io.BufferedIOBase, lines)
        job = ingest_stream(client, stream, "sync", self.collection, quiet=self.quiet, encoder=self.encoder)
        report.jobs.append(job)
        report.uploaded = sorted(documents.sources - {move["source"] for move in report.moved})
        report.is_good &= is_complete(job)

    def _delete(self, client: Client, sources: list[str], report: SyncReport, *, is_whole: bool) -> None:
        """Delete documents, unless something before went wrong that may concern them."""
        if not sources:
            return
        if not is_whole or not all(map(is_complete, report.jobs)):
            reason = "its job did not succeed" if is_whole else "not all files can be read"
            complain(f"nothing is deleted, because {reason}; no longer in the folder: {len(sources)} documents")
            return
        allowed, may_ask = self.allow_mass_deletion, self.may_ask
        if not mass_deletion.confirm(len(sources), report.files, allowed=allowed, may_ask=may_ask):
            report.is_good = False
            return
        for source in sources:
            delete_document(client, self.collection, source)
            report.deleted.append(source)


def hash_file(path: Path) -> str:
    """Hash of a file as an import stores it.

    Raises:
        OSError: the file cannot be read.
    """
    import hashlib

    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
