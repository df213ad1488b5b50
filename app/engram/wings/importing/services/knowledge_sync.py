"""Documents of one folder of a collection, kept in step with the files of a source by a sync tool."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import structlog

from engram.context import tenancy
from engram.context.errors import ConflictError, InvalidRequestError, NameTakenError, NotFoundError
from engram.core.text.document_manifest import HeldDocument, ListedDocument
from engram.services.auth.scope import Scope
from engram.services.corpus.document_service import DocumentChange, DocumentService
from engram.services.corpus.passage_intake import IngestService
from engram.storage.corpus import document_manifest, reader_sets
from engram.storage.database import Database
from engram.storage.jobs import jobs
from engram.wings.importing.conversion.formats import KINDS, find_kind, is_lock_file, is_wanted
from engram.wings.importing.services.file_tokens import FOLDER, FileToken, Step, is_name, name_source
from engram.wings.importing.services.retitling import move_retitled
from engram.wings.importing.storage import pending_documents

log = structlog.get_logger(__name__)

PENDING, COMPLETED, FAILED = "pending", "completed", "failed"
JOB_STATES = {"succeeded": COMPLETED, "failed": FAILED, "cancelled": FAILED}


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """A file that the source has.

    Attributes:
        path: of its directory; empty at the top.
        checksum: another one after each change of the file.
    """

    path: str
    filename: str
    checksum: str

    @property
    def source(self) -> str:
        """The name of its document."""
        return name_source(self.path, self.filename)


@dataclass(frozen=True, slots=True)
class StaleFile:
    """A document that differs from the source's file, and the step that a cleanup takes with it."""

    path: str
    filename: str
    token: FileToken


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """The steps that bring a knowledge base in step with a source.

    Attributes:
        added: files to upload that have no document yet.
        modified: files to upload in place of their documents.
        deleted: documents to delete, and documents to move to the new path of the same file.
        unmodified: how many files are in step.
        ignored: files that make no document, each with the reason.
    """

    added: tuple[SourceEntry, ...]
    modified: tuple[StaleFile, ...]
    deleted: tuple[StaleFile, ...]
    unmodified: int
    ignored: tuple[tuple[str, str], ...]


class KnowledgeSync:
    """Keeps the documents of ``FOLDER`` in step with a source. Documents that came otherwise stay as they are."""

    def __init__(self, database: Database, documents: DocumentService, ingest: IngestService) -> None:
        self._database = database
        self._documents = documents
        self._ingest = ingest

    def plan(self, scope: Scope | None, entries: Sequence[SourceEntry]) -> SyncPlan:
        """Compare the files of a source with the collection; nothing is changed.

        Args:
            scope: None: the collection does not exist yet.
        """
        listed, ignored = _choose_files(entries)
        if scope is None:
            return SyncPlan(tuple(listed.values()), (), (), 0, tuple(ignored))
        name = scope.collection.name
        manifest = [ListedDocument(source, one.checksum) for source, one in listed.items()]
        steps = self._documents.compare(scope, FOLDER, [], manifest)
        held = self._list_held(scope, list(listed))
        for source in [one.source for one in held.values() if one.folder != FOLDER]:
            ignored.append((source, "Another import brought the document of this name."))
            del listed[source]
        pending = self._list_pending(scope)  # what open jobs write counts as written
        upload = set(steps.upload) & listed.keys() - pending.keys()
        upload |= {source for source, one in listed.items() if pending.get(source, one.checksum) != one.checksum}
        renames = {
            move.source: held[move.before]
            for move in steps.moved
            if move.before in held and move.source in listed.keys() - pending.keys() and is_name(move.source)
        }
        upload |= {source for source in listed.keys() - held.keys() if not is_name(source)}  # refused with a reason
        added, modified, deleted = [], [], []
        for source, one in listed.items():
            if source in renames:
                token = FileToken.of(name, renames[source], Step.MOVE, source)
                if _is_moved_whole(renames[source], source):
                    deleted.append(StaleFile(*_split(token.source), token))
                else:
                    modified.append(StaleFile(one.path, one.filename, token))
            elif source in upload and source in held:
                token = FileToken.of(name, held[source], Step.KEEP)
                modified.append(StaleFile(one.path, one.filename, token))
            elif source in upload:
                added.append(one)
        unmodified = len(listed) - len(added) - len(modified) - len(deleted)
        deleted += [
            StaleFile(*_split(source), FileToken.of(name, held[source]))
            for source in steps.delete
            if source in held
        ]
        if ignored:
            log.info("files of a source left out", collection=name, files=len(ignored), first=ignored[0])
        return SyncPlan(tuple(added), tuple(modified), tuple(deleted), unmodified, tuple(ignored))

    def clean(self, scope: Scope, tokens: Sequence[FileToken]) -> int:
        """Move and delete documents as a plan said; those that changed since stay. Return how many were.

        A document whose file goes on under another name is moved with what was learned, by a job where the name is
        its title. If its file would be read otherwise under that name, it counts as stale afterwards.

        Raises:
            InvalidRequestError: a file is of another collection.
        """
        target = scope.collection
        if any(token.collection != target.name for token in tokens):
            raise InvalidRequestError("file_ids: a file is of another knowledge base")
        held = self._list_held(scope, [token.source for token in tokens])
        done = 0
        for token in sorted(tokens, key=lambda one: one.step is Step.DELETE):  # moves come first
            document = held.get(token.source)
            if document is None or document.folder != FOLDER or not token.is_of(document):
                continue
            try:
                if token.step is Step.MOVE and token.target is not None:
                    self._move(scope, document, token.target)
                elif token.step is Step.DELETE:
                    self._documents.delete(scope, token.source)
                else:
                    continue
            except (NotFoundError, NameTakenError) as error:  # another run was quicker
                log.info("document not cleaned up", collection=target.name, source=token.source, reason=str(error))
                continue
            done += 1
        return done

    def reset(self, scope: Scope) -> int:
        """Delete all documents that a sync tool brought; how many there were.

        Raises:
            ConflictError: jobs have yet to write some, which would come back.
        """
        waiting = len(self._list_pending(scope))
        if waiting:
            raise ConflictError(f"{waiting} files are still being ingested; try again once that is done.")
        tokens = [FileToken.of(scope.collection.name, one) for one in self.list_files(scope)]
        return self.clean(scope, tokens)

    def list_files(self, scope: Scope) -> list[HeldDocument]:
        """List the documents that a sync tool brought and the caller sees, in the order of their sources."""
        held = self._list_held(scope, [])
        return [held[source] for source in sorted(held)]

    def find_state(self, scope: Scope, token: FileToken) -> tuple[str, str | None]:
        """Return how far a file is, ``pending``, ``completed`` or ``failed``, and why it failed.

        Raises:
            NotFoundError: there is no such file.
        """
        if token.job is not None:
            with self._database.read() as reader:
                job = jobs.find(reader, scope.collection.id, UUID(token.job))
            if job is not None:
                state = JOB_STATES.get(job.status, PENDING)
                return state, (job.error or f"The job was {job.status}.") if state == FAILED else None
        document = self._list_held(scope, [token.source]).get(token.source)
        if document is None or document.folder != FOLDER:
            raise build_missing_file_error()
        return PENDING if token.source in self._list_pending(scope) else COMPLETED, None

    def check_source(self, scope: Scope, source: str) -> bool:
        """Go on only if a file may make the document of this name. Return whether nobody but admins may read it.

        As in `engram sync`, a new document is closed where documents have readers, as nothing says who its are.

        Raises:
            NameTakenError: another import brought a document of this name.
        """
        with tenancy.allow_all_readers():
            document = self._list_held(scope, [source]).get(source)
        if document is not None and document.folder != FOLDER:
            raise NameTakenError(f"Another import brought the document {source!r}.")
        if document is not None:
            return False
        with self._database.read() as reader:
            return reader_sets.is_bound(reader, scope.collection.id)

    def _move(self, scope: Scope, document: HeldDocument, source: str) -> None:
        is_whole = _is_moved_whole(document, source)
        if is_whole and document.titled_by_name and _name(document.source) != _name(source):
            move_retitled(self._database, self._ingest, scope, document.source, source)
        else:
            self._documents.change(
                scope, document.source, DocumentChange(source=source, forgets_digest=not is_whole)
            )

    def _list_held(self, scope: Scope, sources: Sequence[str]) -> dict[str, HeldDocument]:
        """Source -> document, of the folder and of these sources, that the caller sees.

        Digests are hidden from a caller who does not see everything: they tell of what the caller does not see.
        """
        with self._database.read() as reader:
            held = document_manifest.list_held(
                reader, scope.collection.id, [FOLDER], sources, [], with_readers=False
            )
        if tenancy.get_visibility().readers is not None:
            held = [replace(one, digest=None) for one in held]
        return {one.source: one for one in held}

    def _list_pending(self, scope: Scope) -> dict[str, str | None]:
        """Source -> digest of documents that open jobs write; none for a caller who does not see everything.

        Such a caller would learn which digests fit.
        """
        if tenancy.get_visibility().readers is not None:
            return {}
        with self._database.read() as reader:
            return pending_documents.list_digests(reader, scope.collection.id, FOLDER)


def build_missing_file_error() -> NotFoundError:
    """Make the error for a file that is not there, of whichever knowledge base."""
    return NotFoundError("There is no such file.")


def _is_moved_whole(document: HeldDocument, source: str) -> bool:
    """Whether a new reading under another source would change no more of a document than its title.

    The ending of a file's name says how it is read, and the name is its title where it has no other.
    """
    is_known = _name(document.source) == _name(source) or document.titled_by_name is not None
    return is_known and find_kind(document.source) == find_kind(source)


def _split(source: str) -> tuple[str, str]:
    """Path and name of the file of a document."""
    path, _, filename = source.removeprefix(f"{FOLDER}/").rpartition("/")
    return path, filename


def _name(source: str) -> str:
    return source.rpartition("/")[2]


def _choose_files(entries: Sequence[SourceEntry]) -> tuple[dict[str, SourceEntry], list[tuple[str, str]]]:
    """Source -> file that makes a document; and the files that make none, with reasons."""
    listed: dict[str, SourceEntry] = {}
    ignored: list[tuple[str, str]] = []
    for one in entries:
        source = one.source
        if not is_wanted(one.filename):
            ignored.append((source, f"It is of none of the kinds {', '.join(KINDS)}."))
        elif is_lock_file(one.filename):
            ignored.append((source, "It only marks a file that Office has open."))
        elif source in listed:
            ignored.append((source, "Another file has the same name in Unicode."))
        else:
            listed[source] = one
    return listed, ignored
