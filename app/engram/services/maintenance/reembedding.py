"""Re-embedding: a collection gets the vectors of another encoder, while those that it has go on serving.

The new vectors are made from the stored texts and kept beside the old ones, batch by batch, so a job that was
killed goes on where it was, and passages and verdicts that arrive meanwhile are come to in another round. One
transaction then has the collection be of the new encoder: its vectors change, and what wings made of the old ones
is made anew. Queries see all of the old vectors
or all of the new ones, and are held up by neither.

What is learned without vectors stays to the bit: supports, terms of weights (features of answers as they were
given), which expansions were validated and which passages they were credited to.

The old vectors stay as spare ones. Going back is the same job in the other direction, which embeds only what came
since; ``drop`` gives them up.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, Protocol, TypeVar
from uuid import UUID

import structlog

from engram.context.errors import UnavailableError
from engram.core.text.sizes import BATCH_CHARACTERS, BATCH_TOKENS, count_fitting
from engram.providers.language import key_text
from engram.services.auth.scope import Scope
from engram.services.encoders.encoder import Encoder
from engram.services.jobs.idempotent_jobs import open_job
from engram.services.jobs.job_kinds import REEMBED
from engram.services.jobs.work import Work
from engram.storage.corpus import collections
from engram.storage.corpus.collections import Collection, EncoderId
from engram.storage.database import Database, Reader, Writer
from engram.storage.jobs.jobs import Job
from engram.storage.maintenance import staged_embeddings, vector_indexes
from engram.storage.maintenance.staged_embeddings import TEXT_COLUMNS

log = structlog.get_logger(__name__)

MAX_ROUNDS = 20
"""Times that what arrived meanwhile is come to; each round is as short as the one before was long."""
TEXTS = 2_000
"""Texts of callers that one round of embedding takes up: they are looked for among all."""
CHUNK = 1_000
"""Rows that one statement changes."""
DROP_ROWS = 5_000
LOCK_SECONDS = 300.0
POLL_SECONDS = 0.5


class _Row(Protocol):
    """Something that a vector is made of."""

    @property
    def id(self) -> int: ...
    @property
    def text(self) -> str: ...


Row = TypeVar("Row", bound=_Row)


class _UnembeddedRows(Protocol[Row]):
    def __call__(
        self, reader: Reader, collection_id: int, *, encoder: str, after: int, limit: int
    ) -> list[Row]: ...


FollowEncoder = Callable[[Writer, int], None]
"""Computes anew what follows from the vectors of a collection, in that transaction."""


class _ReembedStoppedError(Exception):
    """The worker was told to stop; what the transaction did so far is not kept."""


class _UnstagedError(Exception):
    """Something came or changed that has no vector yet."""


class ReembeddingService:
    """Accepts and does jobs that change a collection's encoder."""

    def __init__(
        self,
        database: Database,
        encoder: Encoder,
        *,
        batch_size: int,
        follow: FollowEncoder,
    ) -> None:
        self._database = database
        self._encoder = encoder
        self._batch_size = batch_size
        self._follow = follow

    def request(self, scope: Scope, model: str | None = None, key: str | None = None) -> UUID:
        """Queue a job that has the collection be of another encoder; the first one of a repeated Idempotency-Key.

        Args:
            model: its name; by default that of this process that the collection is not of.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
            InvalidRequestError: this process runs no such encoder.
            ConflictError: such a job is open.
            IdempotencyConflictError: the key was used before with another request.
        """
        encoder = self._encoder.find_other_encoder(scope.collection, model)
        payload = asdict(encoder)
        return open_job(self._database, scope, REEMBED, payload, key)

    def request_drop(self, scope: Scope, key: str | None = None) -> UUID:
        """Queue a job that gives up all vectors that do not serve; there is no going back then.

        Raises:
            NotFoundError, ConflictError, IdempotencyConflictError: as ``request``.
        """
        return open_job(self._database, scope, REEMBED, {"drop": True}, key)

    def run(self, work: Work) -> None:
        """Make the vectors and have them serve, unless they do already; or give up those that do not.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
            EmbeddingSpaceMismatchError: this process does not run the encoder.
        """
        job = work.job
        if job.payload.get("drop"):
            self._drop_spare_vectors(work)
            return
        target = _target_encoder(job)
        with self._database.read() as reader:
            collection = collections.load_by_id(reader, job.collection_id)
        self._encoder.embed_anew(target, [])
        for _ in range(MAX_ROUNDS):
            if collection.encoder_fingerprint == target.fingerprint:
                with self._database.write() as writer:
                    work.report(writer, received=work.job.received, updated=work.job.updated, stage="in place")
                    work.finish(writer, format_target(target))
                return
            if not self._stage(work, collection, target):
                return
            try:
                if self._cut_over(work, collection, target):
                    return
            except _ReembedStoppedError:
                return
            except _UnstagedError:
                log.info("vectors missing, once more", collection=collection.name, job_id=str(job.id))
        raise RuntimeError(f"passages changed before each of {MAX_ROUNDS} attempts to take the new vectors over")

    def let_go(self, writer: Writer, job: Job) -> None:
        """Do nothing: staged vectors stay for another try. A job from ``request_drop`` removes them."""

    def _drop_spare_vectors(self, work: Work) -> None:
        """Delete all vectors that do not serve, in batches of ``DROP_ROWS``.

        Raises:
            GoneError: the collection was deleted meanwhile.
        """
        with self._database.read() as reader:
            staged = staged_embeddings.count(reader, work.job.collection_id, encoder=None)
        dropped = 0
        while not work.should_stop():
            with self._database.write() as writer:
                if not collections.lock_against_deletion(writer, work.job.collection_id):
                    raise collections.build_gone_error(work.job.collection)
                batch_count = staged_embeddings.drop(writer, work.job.collection_id, DROP_ROWS)
                dropped += batch_count
                work.report(writer, received=max(staged, dropped), updated=dropped, stage="vectors dropped")
                if batch_count < DROP_ROWS:
                    work.finish(writer)
                    return

    def _stage(self, work: Work, collection: Collection, target: EncoderId) -> bool:
        """Embed and store what has no vector yet; False if the worker has to stop first."""
        progress = _ReembedProgress(self._database, work, collection, target)
        for table in TEXT_COLUMNS:
            without = partial(staged_embeddings.list_unembedded_rows, table=table)
            for rows in self._read_unembedded(collection, target, without):
                vectors = list(self._encoder.embed_anew(target, [row.text for row in rows]))
                with progress.write_counted(table, len(rows)) as writer:
                    staged_embeddings.stage_rows(writer, collection.id, table, target, rows, vectors)
                if work.should_stop():
                    return False
        for sources in self._read_unembedded(collection, target, staged_embeddings.list_unembedded_passages):
            with self._database.read() as reader:
                building = collections.load_by_id(reader, collection.id).key_building
            texts = [
                key_text(building, source.title, source.text, source.sentences, source.language)
                for source in sources
            ]
            vectors = list(self._encoder.embed_anew(target, texts))
            with progress.write_counted("passage", len(sources)) as writer:
                staged_embeddings.stage_passages(writer, collection.id, target, building, sources, vectors)
            if work.should_stop():
                return False
        return self._stage_texts(progress, work, collection, target)

    def _stage_texts(
        self, progress: "_ReembedProgress", work: Work, collection: Collection, target: EncoderId
    ) -> bool:
        """Embed and store texts of callers that have no vector yet; False if the worker has to stop first."""
        while True:
            with self._database.read() as reader:
                texts = staged_embeddings.list_unembedded_texts(reader, collection.id, target.fingerprint, TEXTS)
            if not texts:
                return True
            # One by one: what else is in a batch moves the last bits of a vector, and a replay must not differ.
            vectors = []
            for one in texts:
                embed = self._encoder.embed_questions_anew if one.is_question else self._encoder.embed_anew
                vectors.append(embed(target, [one.text])[0])
                if work.should_stop():
                    return False
            with progress.write_counted("text", len(texts)) as writer:
                staged_embeddings.stage_texts(writer, collection.id, target, [one.text for one in texts], vectors)

    def _read_unembedded(
        self, collection: Collection, target: EncoderId, without: _UnembeddedRows[Row]
    ) -> Iterator[list[Row]]:
        """Yield rows without a vector of the encoder, in batches of its size."""
        after = 0
        while True:
            with self._database.read() as reader:
                rows = without(
                    reader, collection.id, encoder=target.fingerprint, after=after, limit=self._batch_size
                )
            if not rows:
                return
            batch = rows[: count_fitting((len(row.text) for row in rows), BATCH_CHARACTERS)]
            batch = batch[: count_fitting(self._encoder.count_tokens([row.text for row in batch]), BATCH_TOKENS)]
            yield batch
            after = batch[-1].id

    def _cut_over(self, work: Work, collection: Collection, target: EncoderId) -> bool:
        """Put the vectors in place; False if the worker has to stop first.

        Vector indexes go first, since each row that changes would be built into one anew: until workers have built
        them again, searches are exact.
        """
        with self._pause_maintenance(work) as is_locked:
            if not is_locked:
                return False
            self._drop_vector_indexes(collection)
            with self._database.write() as writer:
                self._swap(writer, work, collection, target)
        log.info(
            "collection re-embedded", collection=collection.name, encoder=target.model, job_id=str(work.job.id)
        )
        return True

    def _swap(self, writer: Writer, work: Work, collection: Collection, target: EncoderId) -> None:
        """Swap all vectors and learn anew from them, in this transaction.

        Locks come as everywhere: the collection, the right to learn, then rows.

        Raises:
            _ReembedStoppedError: the worker has to stop.
            _UnstagedError: a row has no vector of the encoder yet.
        """
        if not collections.lock_graph(writer, collection.id):
            raise collections.build_gone_error(collection.name)
        collections.lock_learning(writer, collection.id, exclusive=True)
        changed = 0
        for table in staged_embeddings.list_tables():
            for ids in _chunks(partial(staged_embeddings.list_next_ids, writer, collection.id, table)):
                if work.should_stop():
                    raise _ReembedStoppedError
                swapped_count = staged_embeddings.put_in_place(writer, collection.id, table, target, ids)
                if swapped_count < len(ids) and table != "judged_query":
                    raise _UnstagedError
                changed += swapped_count
        if staged_embeddings.count_taught_questions(writer, collection.id, collection.space + 1):
            raise _UnstagedError
        self._follow(writer, collection.id)
        staged_embeddings.enter(writer, collection.id, target)
        work.report(writer, received=changed, updated=changed, stage="in place")
        work.finish(writer, format_target(target))

    @contextmanager
    def _pause_maintenance(self, work: Work) -> Iterator[bool]:
        """Keep others from building indexes for the block; yield False if the worker has to stop first."""
        until = time.monotonic() + LOCK_SECONDS
        while not work.should_stop():
            with self._database.hold_lock("maintenance") as is_locked:
                if is_locked:
                    yield True
                    return
            if time.monotonic() > until:
                raise UnavailableError("Another process has been maintaining the indexes for minutes.")
            time.sleep(POLL_SECONDS)
        yield False

    def _drop_vector_indexes(self, collection: Collection) -> None:
        """Drop the collection's vector indexes, and note that it has none."""
        with self._database.read() as reader:
            built = [index for index in vector_indexes.indexes(reader) if index.collection_id == collection.id]
        if not built:
            return
        with self._database.write() as writer:
            collections.record_indexed(writer, collection.id, [])
        with self._database.administer() as administrator:
            for index in built:
                vector_indexes.drop(administrator, index.name)


class _ReembedProgress:
    """Progress of a job: counts of vectors."""

    def __init__(self, database: Database, work: Work, collection: Collection, target: EncoderId) -> None:
        self._database, self._work, self._collection = database, work, collection
        with database.read() as reader:
            self._total = staged_embeddings.count_vectors(reader, collection.id)
            self._staged_count = staged_embeddings.count(reader, collection.id, target.fingerprint)

    @contextmanager
    def write_counted(self, stage: str, count: int) -> Iterator[Writer]:
        """Begin a transaction that reports ``count`` more vectors as staged."""
        self._staged_count += count
        with self._database.write() as writer:
            if not collections.lock_against_deletion(writer, self._collection.id):
                raise collections.build_gone_error(self._collection.name)
            self._work.report(
                writer,
                received=max(self._total, self._staged_count),
                updated=self._staged_count,
                stage=f"{stage} vectors",
            )
            yield writer


def _target_encoder(job: Job) -> EncoderId:
    """Return the encoder that the job asks for."""
    return EncoderId(job.payload["model"], job.payload["fingerprint"], job.payload["dimension"])


def format_target(encoder: EncoderId) -> dict[str, str]:
    """Return the encoder as the job's result has it."""
    return {"model": encoder.model, "fingerprint": encoder.fingerprint}


def _chunks(read: Callable[[Any, int], list[Any]], after: Any = None) -> Iterator[list[Any]]:
    """Yield all rows after ``after``, in pages."""
    while ids := read(after, CHUNK):
        yield ids
        after = ids[-1]
