"""Accepting work on a collection: a job and its staged lines, durable before the caller is answered."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import structlog

from engram.context import tenancy
from engram.context.errors import (
    ConflictError,
    EmbeddingUnavailableError,
    IdempotencyConflictError,
    NotFoundError,
)
from engram.core.auth.access_keys import INGEST as INGEST_SCOPE
from engram.core.auth.access_keys import READ
from engram.services.auth.quotas import build_passage_quota_error
from engram.services.auth.scope import LOCAL, CollectionOpening, Principal, Scope
from engram.services.corpus.collection_removal import RemovalService
from engram.services.corpus.document_sight import find_irreplaceable
from engram.services.corpus.passage_observer import PassageObserver
from engram.services.corpus.passage_removal import remove_passages
from engram.services.encoders.encoder import Encoder
from engram.services.jobs.idempotent_jobs import begin_once
from engram.services.jobs.job_kinds import INGEST
from engram.storage.corpus import collections, passages, reader_sets, staged_documents, staged_lines
from engram.storage.corpus.collections import Collection, EncoderId, OpenedCollection
from engram.storage.corpus.passages import StoredPassage, StoredSentence
from engram.storage.database import Database, Writer
from engram.storage.jobs import jobs
from engram.storage.jobs.jobs import Job

log = structlog.get_logger(__name__)

ABANDONED_AFTER_SECONDS = 600.0


class PassageReception:
    """Passages that are arriving. Nothing is written before the first lines are added, which open the job.

    The job counts only once ``finish`` has returned; ``abort`` leaves nothing, a collection made for it included.
    """

    def __init__(
        self,
        database: Database,
        encoder: Encoder,
        opening: CollectionOpening,
        key: str | None,
    ) -> None:
        self._database = database
        self._encoder = encoder
        self._opening = opening
        self._key = key
        self._digest = hashlib.sha256()
        self._opened: OpenedCollection | None = None
        self._sent = 0
        self._refused: set[str] = set()
        self._incomplete: set[str] = set()
        self.job_id = uuid4()

    @property
    def collection(self) -> str:
        """The name of the collection that they are for."""
        return self._opening.name

    def digest(self, chunk: bytes) -> None:
        """Count raw body bytes towards the fingerprint that the Idempotency-Key guards."""
        self._digest.update(chunk)

    def add(
        self,
        lines: Sequence[tuple[int, Mapping[str, Any]]],
        errors: Sequence[tuple[int, str]],
        documents: Sequence[Mapping[str, Any]] = (),
        *,
        whole: bool = False,
    ) -> None:
        """Stage (line number, passage) pairs and record (line number, reason) of rejected lines.

        Passages of documents of which the caller does not see all are rejected.

        Args:
            documents: that these lines and those to come have whole, or that their importer no longer has.
            whole: whether all is refused if the caller does not see all of one of the documents.

        Raises:
            ConflictError: it is ``whole``, and the caller does not.
            EmbeddingSpaceMismatchError: the collection's vectors are of another encoder.
            QuotaExceededError: the tenant would hold more passages than it may.
        """
        self._sent += len(lines)
        if self._opening.room is not None and self._sent > self._opening.room:
            raise build_passage_quota_error(self._opening.room)
        collection_id = self._open().collection.id
        folders = {one["source"]: one.get("folder") for one in documents}
        irreplaceable = find_irreplaceable(self._database, self._opening.principal, collection_id, folders)
        if whole and irreplaceable:
            raise ConflictError(_describe_refusal(min(irreplaceable)))
        self._refused |= irreplaceable
        documents = [one for one in documents if one["source"] not in self._refused]
        refused = [(number, body["document"]) for number, body in lines if body.get("document") in self._refused]
        errors = [*errors, *((number, _describe_refusal(source)) for number, source in refused)]
        lines = [(number, body) for number, body in lines if body.get("document") not in self._refused]
        with self._database.write() as writer:
            staged_documents.add(writer, collection_id, self.job_id, documents)
            staged_lines.add(writer, collection_id, self.job_id, lines, errors)
            jobs.receive(
                writer, collection_id, self.job_id, received=len(lines) + len(errors), rejected=len(errors)
            )

    def note_incomplete(self, source: str) -> None:
        """Note that a passage of a document was rejected: it is kept without a hash, so that it is sent again."""
        self._incomplete.add(source)

    def finish(self) -> UUID:
        """Release the job to the workers; the job to look at, which is the first one of a repeated key.

        Raises:
            IdempotencyConflictError: the key was used before with another body; this one is discarded.
            NotFoundError: the collection was deleted meanwhile.
            EmbeddingSpaceMismatchError: its vectors are of another encoder.
        """
        collection_id = self._open().collection.id
        try:
            job_id, first = begin_once(
                self._database,
                collection_id,
                self._opening.name,
                self._opening.principal.name,
                self._key,
                self._digest.digest(),
                self.job_id,
                self._release,
            )
        except IdempotencyConflictError:
            self.abort()
            raise
        if not first:
            self.abort()
        return job_id

    def _release(self, writer: Writer) -> None:
        collection_id = self._open().collection.id
        if self._incomplete:
            staged_documents.forget_digests(writer, collection_id, self.job_id, list(self._incomplete))
        jobs.release(writer, collection_id, self.job_id)

    def abort(self) -> None:
        """Forget the job and every line staged so far."""
        if self._opened is None:
            return
        with self._database.write() as writer:
            jobs.discard(writer, self._opened.collection.id, self.job_id)
            if self._opened.created:
                collections.delete_unused(writer, self._opened.collection.id)
        self._opened = None

    def _open(self) -> OpenedCollection:
        if self._opened is None:
            chosen = self._encoder.choose(self._opening.encoder)  # may ask a server, so before the transaction
            try:
                self._opened = self._open_as(chosen)
            except EmbeddingUnavailableError:  # of a collection whose server was not reached yet
                self._encoder.identify()
                self._opened = self._open_as(chosen)
        return self._opened

    def _open_as(self, chosen: EncoderId) -> OpenedCollection:
        with self._database.write() as writer:
            opened = self._opening.open(writer, self._encoder, chosen)
            jobs.add(
                writer,
                opened.collection.id,
                self.job_id,
                kind=INGEST.name,
                lane=INGEST.lane,
                payload={},
                receiving=True,
            )
        return opened


def _describe_refusal(source: str) -> str:
    return f"You do not see all of {source!r}. It is replaced by who does."


class IngestService:
    """Accepts passages and other changes to collections."""

    def __init__(self, database: Database, encoder: Encoder, observers: Sequence[PassageObserver]) -> None:
        self._database = database
        self._encoder = encoder
        self._observers = observers

    def receive(self, opening: CollectionOpening, key: str | None = None) -> PassageReception:
        """Passages for a collection, which is made if it does not exist."""
        return PassageReception(self._database, self._encoder, opening, key)

    def discard_abandoned(self) -> int:
        """Forget jobs whose sender vanished with the API process that was receiving them; how many there were."""
        with self._database.write() as writer:
            abandoned = jobs.discard_abandoned(writer, ABANDONED_AFTER_SECONDS)
        if abandoned:
            log.warning("discarded jobs whose lines never all arrived", jobs=abandoned)
        return abandoned

    def errors(self, job: Job, after_line: int, limit: int) -> list[tuple[int, str]]:
        """(line, reason) of rejected lines after ``after_line``."""
        with self._database.read() as reader:
            return staged_lines.errors(reader, job.collection_id, job.id, after_line, limit)

    def passage(self, scope: Scope, external_id: str) -> tuple[StoredPassage, list[StoredSentence]]:
        """A passage with its sentences in reading order.

        Raises:
            NotFoundError: there is no such passage.
        """
        target = scope.collection
        with self._database.read() as reader:
            version = passages.versions(reader, target.id, [external_id]).get(external_id)
            stored = passages.load_by_id(reader, target.id, [version[0]]) if version else {}
            if version is None or version[0] not in stored:
                raise NotFoundError(f"There is no passage {external_id!r} in collection {target.name!r}.")
            return stored[version[0]], passages.list_sentences(reader, target.id, [version[0]])

    def passages(self, scope: Scope, after: str | None, limit: int) -> list[StoredPassage]:
        """The collection's passages in the order of their ids, those after ``after``.

        Their readers are shown to those who may import.
        """
        with self._database.read() as reader:
            page = passages.page(reader, scope.collection.id, after, limit)
        return page if scope.is_allowed(INGEST_SCOPE) else [replace(one, readers=None) for one in page]

    def collections(
        self, after: str | None, limit: int, principal: Principal = LOCAL, *, descending: bool = False
    ) -> list[Collection]:
        """Collections that the principal may read, in name order, those after ``after``.

        Args:
            descending: the other way round.
        """
        names = principal.grants.collections(READ)
        with self._database.read() as reader:
            page = collections.page(reader, after, limit, principal.tenant, names, descending=descending)
            return [reader_sets.describe_visible(reader, collection) for collection in page]

    def collection(self, scope: Scope) -> Collection:
        """The collection with what the caller sees of it.

        Raises:
            NotFoundError: it is not there.
        """
        with self._database.read() as reader:
            return reader_sets.describe_visible(reader, scope.collection)

    def delete_collection(self, scope: Scope) -> None:
        """Delete a collection, see ``RemovalService.remove``."""
        RemovalService(self._database).remove(scope.collection)

    def delete_passage(self, scope: Scope, external_id: str) -> None:
        """Remove a passage and everything that only it held.

        Raises:
            NotFoundError: there is no such passage, or the collection was deleted meanwhile.
        """
        target = scope.collection
        missing = NotFoundError(f"There is no passage {external_id!r} in collection {target.name!r}.")
        with self._database.read() as reader:
            visible = passages.versions(reader, target.id, [external_id]).get(external_id)
        # What hangs on it goes with it, whoever reads it.
        with tenancy.allow_all_readers(), self._database.write() as writer:
            if not collections.lock_graph(writer, target.id):
                raise collections.build_gone_error(target.name)
            version = passages.versions(writer, target.id, [external_id]).get(external_id)
            if version is None or visible is None:
                raise missing
            remove_passages(writer, target.id, [version[0]], self._observers)
        log.info("passage deleted", collection=target.name, passage=external_id)
