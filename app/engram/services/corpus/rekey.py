"""Re-keying: all base keys of a collection are made anew of another part of its passages, while the old ones serve.

New dense keys are embedded and staged with no SQL open, batch by batch, so a killed job goes on where it was. One
transaction then takes them over: dense keys, lexical postings, what evolved from them, and what new passages' keys
are made of. Queries see either the old keys or the new ones.

A job for keys of the parts that the collection's keys have already only analyses words anew, where an earlier
version of the analysis gave the terms. It goes batch by batch. Meanwhile questions are read by the present version,
and match terms of the earlier one where both are equal.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from uuid import UUID

from engram.core.passage_keys.key_text import KeyBuilding
from engram.core.text.sizes import BATCH_CHARACTERS, BATCH_TOKENS, count_fitting
from engram.providers.language import ANALYSER, key_text, terms
from engram.services.auth.scope import Scope
from engram.services.encoders.encoder import Encoder
from engram.services.jobs.idempotent_jobs import open_job
from engram.services.jobs.job_kinds import REKEY
from engram.services.jobs.work import Work
from engram.storage.corpus import collections, current_vectors, lexical_index
from engram.storage.corpus.lexical_index import TermCounts
from engram.storage.database import Database, Writer
from engram.storage.jobs.jobs import Job
from engram.storage.maintenance import staged_keys
from engram.storage.maintenance.staged_keys import KeyText, StagedKey

MAX_ROUNDS = 5
SWAP_PASSAGES = 128
"""Passages whose keys one statement changes, far within its time. Measured on two busy cores with 8,076 passages:
128 rows of the vector index took 1 to 3 s, all of them 63 to 127 s, their postings 7 to 16 s."""

Rebase = Callable[[Writer, int, Sequence[int]], None]
"""Told which passages of a collection have new base keys, in that transaction and under ``lock_graph``."""


class _RekeyStoppedError(Exception):
    """The worker was told to stop; what the transaction did so far is not kept."""


class RekeyService:
    """Accepts and does re-key jobs, in turn with the ingest of the same collection."""

    def __init__(
        self, database: Database, encoder: Encoder, *, batch_size: int, rebase: Rebase | None = None
    ) -> None:
        self._database = database
        self._encoder = encoder
        self._batch_size = batch_size
        self._rebase = rebase

    def request(self, scope: Scope, building: KeyBuilding, key: str | None = None) -> UUID:
        """Queue a job that makes the collection's keys anew; the first one of a repeated Idempotency-Key.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
            ConflictError: the collection is being re-keyed already.
            IdempotencyConflictError: the key was used before with another request.
            EmbeddingSpaceMismatchError: the collection's vectors are of another encoder.
        """
        self._encoder.check(scope.collection)
        return open_job(self._database, scope, REKEY, {"key_building": building}, key)

    def run(self, work: Work) -> None:
        """Make the keys and swap them; if the collection has such keys already, bring their terms up to date.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
            EmbeddingSpaceMismatchError: its vectors are of another encoder.
        """
        with self._database.read() as reader:
            collection = collections.load_by_id(reader, work.job.collection_id)
        if collection.key_building == _read_building(work.job):
            self._analyse_anew(work)
            return
        for _ in range(MAX_ROUNDS):
            if not self._stage(work):
                return
            try:
                with self._database.write() as writer:
                    swapped = self._swap(writer, work)
            except _RekeyStoppedError:
                return
            if swapped:
                return
        raise RuntimeError(f"passages changed before each of {MAX_ROUNDS} attempts to take the new keys over")

    def let_go(self, writer: Writer, job: Job) -> None:
        """Forget the keys that wait; the old ones go on serving."""
        staged_keys.let_go(writer, job)

    def _analyse_anew(self, work: Work) -> None:
        """Replace terms that an earlier version of the analysis gave."""
        job = work.job
        after, updated = 0, job.updated
        while not work.should_stop():
            with self._database.write() as writer:
                if not collections.lock_graph(writer, job.collection_id):
                    raise collections.build_gone_error(job.collection)
                outdated = staged_keys.list_of_other_analysers(writer, job, ANALYSER, after, SWAP_PASSAGES)
                batch = _cut_to_batch(outdated)
                total = collections.load_by_id(writer, job.collection_id).passage_count
                updated += len(batch)
                work.report(writer, received=total, updated=updated, unchanged=total - updated)
                if not batch:
                    work.finish(writer)
                    return
                self._index_terms(writer, job, batch)
                current_vectors.renew_base_version(writer, job.collection_id)
                if self._rebase is not None:
                    self._rebase(writer, job.collection_id, [source.passage_id for source in batch])
            after = batch[-1].passage_id

    def _index_terms(self, writer: Writer, job: Job, sources: Sequence[KeyText]) -> None:
        """Put the terms of these passages' keys in place."""
        counted = [
            TermCounts(source.passage_id, Counter(terms(_text(_read_building(job), source), source.language)))
            for source in sources
        ]
        length = lexical_index.index(writer, job.collection_id, counted, ANALYSER)
        collections.add_counts(
            writer, job.collection_id, passages=0, sentences=0, entities=0, lexical_length=length
        )

    def _stage(self, work: Work) -> bool:
        """Embed and stage what is not staged yet; False if told to stop before."""
        job = work.job
        with self._database.read() as reader:
            collection = collections.load_by_id(reader, job.collection_id)
            staged = staged_keys.count(reader, job)
        after = 0
        while not work.should_stop():
            with self._database.read() as reader:
                batch = _cut_to_batch(staged_keys.list_unstaged(reader, job, after, self._batch_size))
            if not batch:
                return True
            texts = [_text(_read_building(job), source) for source in batch]
            texts = texts[: count_fitting(self._encoder.count_tokens(texts), BATCH_TOKENS)]
            batch = batch[: len(texts)]
            vectors = self._encoder.embed(collection, texts)
            keys = [
                StagedKey(source.passage_id, source.content_hash, vector)
                for source, vector in zip(batch, vectors, strict=True)
            ]
            with self._database.write() as writer:
                space = collections.lock_graph_in(writer, job.collection_id)
                if space is None:
                    raise collections.build_gone_error(job.collection)
                if space != collection.space:  # other vectors have taken the place of those that these go with
                    collection, staged = collections.load_by_id(writer, job.collection_id), 0
                    continue
                staged += len(keys)
                work.report(writer, received=max(collection.passage_count, staged), updated=staged)
                staged_keys.stage(writer, job, keys)
            after = batch[-1].passage_id
        return False

    def _swap(self, writer: Writer, work: Work) -> bool:
        """Put the staged keys in place, in one transaction; False if passages came or changed meanwhile."""
        job = work.job
        if not collections.lock_graph(writer, job.collection_id):
            raise collections.build_gone_error(job.collection)
        if staged_keys.list_unstaged(writer, job, 0, 1):
            return False
        changed: list[int] = []
        size = min(self._batch_size, SWAP_PASSAGES)
        while chunk := _cut_to_batch(staged_keys.sources(writer, job, changed[-1] if changed else 0, size)):
            if work.should_stop():
                raise _RekeyStoppedError
            passages = [source.passage_id for source in chunk]
            staged_keys.put_in_place(writer, job, passages)
            self._index_terms(writer, job, chunk)
            changed += passages
        collections.set_key_building(writer, job.collection_id, _read_building(job))
        if self._rebase is not None:
            self._rebase(writer, job.collection_id, changed)
        staged_keys.let_go(writer, job)
        work.report(writer, received=len(changed), updated=len(changed))
        work.finish(writer)
        return True


def _read_building(job: Job) -> KeyBuilding:
    building: KeyBuilding = job.payload["key_building"]
    return building


def _cut_to_batch(sources: Sequence[KeyText]) -> Sequence[KeyText]:
    """Return the leading passages that fit into one batch."""
    return sources[: count_fitting((len(source.text) for source in sources), BATCH_CHARACTERS)]


def _text(building: KeyBuilding, source: KeyText) -> str:
    return key_text(building, source.title, source.text, source.sentences, source.language)
