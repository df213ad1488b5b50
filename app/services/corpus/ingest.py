"""Accepting work on a collection: a job and its staged lines, durable before the caller is answered."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

import structlog

from app.core.key_text import KeyBuilding
from app.errors import ConflictError, NotFoundError
from app.services.access.scope import Opening, Scope
from app.services.jobs.keyed import open_job
from app.storage.corpus import collections, lexical, passages
from app.storage.corpus.collections import Collection, Opened
from app.storage.corpus.passages import StoredPassage, StoredSentence
from app.storage.database import Database, Writer
from app.storage.jobs import idempotency, jobs
from app.storage.jobs.jobs import Job

log = structlog.get_logger(__name__)


class Reception:
    """Passages that are arriving. Nothing is written before the first lines are added, which open the job.

    The job counts only once ``finish`` has returned; ``abort`` leaves nothing, a collection made for it included.
    """

    def __init__(self, database: Database, opening: Opening, key: str | None) -> None:
        self._database = database
        self._opening = opening
        self._key = key
        self._digest = hashlib.sha256()
        self._opened: Opened | None = None
        self.job_id = uuid4()

    def digest(self, chunk: bytes) -> None:
        """Count raw body bytes towards the fingerprint that the Idempotency-Key guards."""
        self._digest.update(chunk)

    def add(self, lines: Sequence[tuple[int, Mapping[str, Any]]], errors: Sequence[tuple[int, str]]) -> None:
        """Stage (line number, passage) pairs and record (line number, reason) of rejected lines."""
        collection_id = self._open().collection_id
        with self._database.write() as writer:
            jobs.add_lines(writer, collection_id, self.job_id, lines, errors)

    def finish(self) -> UUID:
        """Release the job to the workers; the job to look at, which is the first one of a repeated key.

        Raises:
            IdempotencyConflictError: the key was used before with another body; this one is discarded.
        """
        collection_id = self._open().collection_id
        body_hash = self._digest.digest()
        answer = {"job_id": str(self.job_id)}
        with self._database.write() as writer:
            if self._key is None or idempotency.remember(writer, collection_id, self._key, body_hash, answer):
                jobs.release(writer, collection_id, self.job_id)
                return self.job_id
        self.abort()
        with self._database.read() as reader:
            first = idempotency.first_answer(reader, collection_id, self._key, body_hash)
        return UUID(first["job_id"]) if first else self.job_id

    def abort(self) -> None:
        """Forget the job and every line staged so far."""
        if self._opened is None:
            return
        with self._database.write() as writer:
            jobs.discard(writer, self._opened.collection_id, self.job_id)
            if self._opened.created:
                collections.delete_unused(writer, self._opened.collection_id)
        self._opened = None

    def _open(self) -> Opened:
        if self._opened is None:
            with self._database.write() as writer:
                opened = self._opening.open(writer)
                jobs.open_job(writer, opened.collection_id, self.job_id)
            self._opened = opened
        return self._opened


class IngestService:
    """Accepts passages and other changes to collections, and reports on jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def receive(self, opening: Opening, key: str | None = None) -> Reception:
        """Passages for a collection, which is made if it does not exist."""
        return Reception(self._database, opening, key)

    def rekey(self, scope: Scope, building: KeyBuilding, key: str | None = None) -> UUID:
        """Queue a job that makes the collection's keys anew; the first one of a repeated Idempotency-Key.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
            ConflictError: the collection is being re-keyed already.
            IdempotencyConflictError: the key was used before with another request.
        """
        name = scope.collection.name

        def start(writer: Writer, target: int, job_id: UUID) -> None:
            if not jobs.open_rekey(writer, target, job_id, building):
                raise _under_way(name, jobs.open_rekey_job(writer, target))

        job_id, opened = open_job(self._database, scope, key, f"rekey {building}", start)
        if opened:
            log.info("re-key job accepted", job_id=str(job_id), collection=name, key_building=building)
        return job_id

    def job(self, scope: Scope, job_id: UUID) -> Job:
        """The job.

        Raises:
            NotFoundError: there is no such job.
        """
        with self._database.read() as reader:
            job = jobs.find(reader, scope.collection.id, job_id)
        if job is None:
            raise NotFoundError(f"There is no job {job_id} in collection {scope.collection.name!r}.")
        return job

    def errors(self, job: Job, after_line: int, limit: int) -> list[tuple[int, str]]:
        """(line, reason) of rejected lines after ``after_line``."""
        with self._database.read() as reader:
            return jobs.errors(reader, job.collection_id, job.id, after_line, limit)

    def passage(self, scope: Scope, external_id: str) -> tuple[StoredPassage, list[StoredSentence]]:
        """A passage with its sentences in reading order.

        Raises:
            NotFoundError: there is no such passage.
        """
        target = scope.collection
        with self._database.read() as reader:
            found = passages.versions(reader, target.id, [external_id]).get(external_id)
            stored = passages.by_id(reader, target.id, [found[0]]) if found else {}
            if found is None or found[0] not in stored:
                raise NotFoundError(f"There is no passage {external_id!r} in collection {target.name!r}.")
            return stored[found[0]], passages.sentences_of(reader, target.id, [found[0]])

    def collections(self, after: str | None, limit: int) -> list[Collection]:
        """Collections in name order, those after ``after``."""
        with self._database.read() as reader:
            return collections.page(reader, after, limit)

    def delete_collection(self, scope: Scope) -> None:
        """Remove a collection with everything in it.

        Raises:
            NotFoundError: it was deleted meanwhile; one made since under its name stays.
        """
        target = scope.collection
        with self._database.write() as writer:
            if not collections.delete(writer, target.id):
                raise collections.gone(target.name)
        log.info("collection deleted", collection=target.name)

    def delete_passage(self, scope: Scope, external_id: str) -> None:
        """Remove a passage and everything that only it held.

        Raises:
            NotFoundError: there is no such passage, or the collection was deleted meanwhile.
        """
        target = scope.collection
        with self._database.write() as writer:
            if not collections.lock_graph(writer, target.id):
                raise collections.gone(target.name)
            found = passages.versions(writer, target.id, [external_id]).get(external_id)
            if found is None:
                raise NotFoundError(f"There is no passage {external_id!r} in collection {target.name!r}.")
            sentences = [sentence.id for sentence in passages.sentences_of(writer, target.id, [found[0]])]
            entities, times = passages.delete_sentences(writer, target.id, sentences)
            length = lexical.remove(writer, target.id, [found[0]])
            passages.delete_passage(writer, target.id, found[0])
            orphans = passages.delete_orphans(writer, target.id, entities, times)
            collections.add_counts(
                writer,
                target.id,
                passages=-1,
                sentences=-len(sentences),
                entities=-orphans,
                lexical_length=length,
            )
        log.info("passage deleted", collection=target.name, passage=external_id)


def _under_way(collection: str, job: Job | None) -> ConflictError:
    if job is None:  # it has finished since
        return ConflictError(f"Collection {collection!r} was being re-keyed.")
    return ConflictError(
        f"Collection {collection!r} is being re-keyed to {job.key_building!r} by job {job.id}.", job_id=str(job.id)
    )
