"""Ingest jobs: interrupted, shared between workers, failing, abandoned, raced by deletes."""

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from numpy.typing import NDArray

from engram.composition.container import Application
from engram.context.errors import NotFoundError
from engram.services.corpus.graph_builder import GraphBuilder
from engram.services.encoders.encoder import Encoder
from engram.services.jobs.job_runner import MAX_ATTEMPTS, Runner
from tests.support import state
from tests.support.jobs import run_again, runner

INCIDENTAL = ("collection_id", "id", "passage_id", "time_expression_id", "created_at", "updated_at", "text_since")
MANY_PASSAGES = [
    {"id": f"p{n}", "title": f"Bridge {n}", "text": f"Bridge {n} was opened by Ada Lund in {1900 + n}. It is long."}
    for n in range(7)
]


class DisturbedEncoder:
    """The real encoder, with something happening before a call."""

    def __init__(self, application: Application, before: Callable[[Sequence[str]], None]) -> None:
        self._embedder = application.models.embedder
        self._before = before
        self.model, self.fingerprint = self._embedder.model, self._embedder.fingerprint
        self.dimension = self._embedder.dimension
        self.calls = 0

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return self._embedder.count_tokens(texts)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls += 1
        self._before(texts)
        return self._embedder.embed(texts)


def indexer(application: Application, embedder: Any, batch_size: int = 3) -> Runner:
    ingest = GraphBuilder(
        application.database,
        Encoder(embedder),
        application.models.language,
        application.corpus.kinds,
        batch_size=batch_size,
        replay_sentences=application.corpus.replay_sentences,
        observers=application.hooks.passage_observers,
    )
    return runner(application, ingest=ingest)


def content(application: Application, collection: str) -> dict[str, list[Any]]:
    """The graph without the ids that sequences drew."""
    graph = state.snapshot(
        application, collection, ("passage", "sentence", "entity", "time_expression"), INCIDENTAL
    )
    return {table: sorted(rows, key=str) for table, rows in graph.items()}


class TestInterruptions:
    def test_a_failed_batch_keeps_the_ones_before_and_is_done_again(
        self, application: Application, collection: str
    ) -> None:
        def fail_once(_: Sequence[str]) -> None:
            if flaky.calls == 2:
                raise RuntimeError("out of memory")

        flaky = DisturbedEncoder(application, fail_once)
        index = indexer(application, flaky)
        job_id = state.stage_passages(application, collection, *MANY_PASSAGES)

        assert index.run_ready() == 0
        halfway = application.jobs.jobs.job(application.auth.access.scope(collection), job_id)
        assert (halfway.status, halfway.created, halfway.attempts) == ("queued", 3, 1)
        assert halfway.error == "RuntimeError: out of memory"
        assert state.counts(application, collection) == state.true_counts(application, collection)
        assert state.counts(application, collection)[0] == 3

        assert run_again(application, index) == 1
        finished = application.jobs.jobs.job(application.auth.access.scope(collection), job_id)
        assert (finished.status, finished.created, finished.unchanged, finished.error) == ("succeeded", 7, 0, None)

        straight = f"{collection}-straight"
        state.stage_passages(application, straight, *MANY_PASSAGES)
        application.jobs.runner.run_ready()
        assert content(application, collection) == content(application, straight)
        assert state.counts(application, collection) == state.counts(application, straight)

    def test_a_job_that_keeps_failing_fails_for_good_and_keeps_what_it_had_done(
        self, application: Application, collection: str
    ) -> None:
        def fail_from_the_second_on(_: Sequence[str]) -> None:
            if flaky.calls > 1:
                raise RuntimeError("out of memory")

        flaky = DisturbedEncoder(application, fail_from_the_second_on)
        index = indexer(application, flaky)
        job_id = state.stage_passages(application, collection, *MANY_PASSAGES)
        assert [run_again(application, index) for _ in range(MAX_ATTEMPTS)] == [0] * (MAX_ATTEMPTS - 1) + [1]

        failed = application.jobs.jobs.job(application.auth.access.scope(collection), job_id)
        assert (failed.status, failed.error) == ("failed", "RuntimeError: out of memory")
        assert (failed.created, failed.waiting) == (3, 4)
        assert state.rows(application, collection, "ingest_line") == []
        assert state.counts(application, collection) == state.true_counts(application, collection)

    def test_a_job_that_is_cancelled_keeps_what_it_had_done(
        self, application: Application, collection: str
    ) -> None:
        def cancel(_: Sequence[str]) -> None:
            if slow.calls == 2:
                application.jobs.jobs.cancel(application.auth.access.scope(collection), job_id)

        slow = DisturbedEncoder(application, cancel)
        job_id = state.stage_passages(application, collection, *MANY_PASSAGES)
        assert indexer(application, slow, batch_size=1).run_ready() == 1

        cancelled = application.jobs.jobs.job(application.auth.access.scope(collection), job_id)
        assert (cancelled.status, cancelled.error) == ("cancelled", None)
        assert 0 < cancelled.created < len(MANY_PASSAGES)
        assert state.counts(application, collection)[0] == cancelled.created
        assert state.rows(application, collection, "ingest_line") == []
        assert state.counts(application, collection) == state.true_counts(application, collection)
        state.stage_passages(application, collection, *MANY_PASSAGES)
        assert application.jobs.runner.run_ready() == 1
        assert state.counts(application, collection)[0] == len(MANY_PASSAGES)

    def test_one_that_waits_is_cancelled_with_its_lines(self, application: Application, collection: str) -> None:
        job_id = state.stage_passages(application, collection, *MANY_PASSAGES)
        shown = application.jobs.jobs.cancel(application.auth.access.scope(collection), job_id)
        assert (shown.job.status, shown.job.waiting) == ("cancelled", len(MANY_PASSAGES))
        assert state.rows(application, collection, "ingest_line") == []
        assert application.jobs.runner.run_ready() == 0

    def test_stopped_ingest_resumes_later(self, application: Application, collection: str) -> None:
        index = indexer(application, application.models.embedder)
        job_id = state.stage_passages(application, collection, *MANY_PASSAGES)
        answers = iter([False, *[True] * 9])

        index.run_ready(lambda: next(answers))
        halfway = application.jobs.jobs.job(application.auth.access.scope(collection), job_id)
        assert (halfway.status, halfway.created, state.counts(application, collection)[0]) == ("queued", 3, 3)
        index.run_ready()
        assert application.jobs.jobs.job(application.auth.access.scope(collection), job_id).created == 7

    def test_lines_that_never_all_arrived_go(self, application: Application, collection: str) -> None:
        reception = application.corpus.ingest.receive(application.auth.access.prepare_opening(collection))
        reception.add([(1, {"id": "a", "text": "Bees fly."})], [])
        application.jobs.runner.run_ready()
        assert (
            application.jobs.jobs.job(application.auth.access.scope(collection), reception.job_id).status
            == "receiving"
        )
        with application.database.write() as writer:
            writer.execute(
                "UPDATE job SET updated_at = now() - interval '11 minutes' WHERE id = %(id)s",
                {"id": reception.job_id},
            )

        assert application.corpus.ingest.discard_abandoned() == 1

        assert self.count_rows_of(application, reception.job_id) == [0, 0, 0]

    def count_rows_of(self, application: Application, job_id: UUID) -> list[int]:
        """How many rows there are of a job, its lines and its errors."""
        tables = {"job": "id", "ingest_line": "job_id", "ingest_error": "job_id"}
        with application.database.read() as reader:
            return [
                reader.scalar(f"SELECT count(*) FROM {table} WHERE {column} = %(job)s", {"job": job_id})
                for table, column in tables.items()
            ]


class TestTwoWorkers:
    def test_many_at_once_do_every_job_once(self, application: Application, collection: str) -> None:
        names = [f"{collection}-{n}" for n in range(3)]
        ids = {
            name: [
                state.stage_passages(application, name, *MANY_PASSAGES[:4]),
                state.stage_passages(application, name, *MANY_PASSAGES[2:]),
            ]
            for name in names
        }
        state.together(*[indexer(application, application.models.embedder, batch_size=2).run_ready] * 4)
        application.jobs.runner.run_ready()

        for name in names:
            done = [application.jobs.jobs.job(application.auth.access.scope(name), job_id) for job_id in ids[name]]
            assert [job.status for job in done] == ["succeeded"] * 2
            assert [sum((job.created, job.updated, job.unchanged)) for job in done] == [4, 5]
            assert sum(job.created for job in done) == 7
            assert state.counts(application, name) == state.true_counts(application, name)

    @pytest.mark.parametrize("deleted", ["Ada Lund met Bo Falk.", "They met in 1931.", "Bo Falk left in 1931."])
    def test_entities_of_a_passage_deleted_during_ingest_are_recreated(
        self, application: Application, collection: str, deleted: str
    ) -> None:
        """Names and times that the batch took for known go with a passage that is deleted before it is written."""

        def delete_once(_: Sequence[str]) -> None:
            if racing.calls == 1:
                application.corpus.ingest.delete_passage(application.auth.access.scope(collection), "old")

        state.stage_passages(application, collection, {"id": "old", "text": deleted})
        application.jobs.runner.run_ready()
        racing = DisturbedEncoder(application, delete_once)
        state.stage_passages(application, collection, {"id": "new", "text": "Bo Falk met Ada Lund again in 1931."})

        assert indexer(application, racing).run_ready() == 1

        assert {row["name"] for row in state.rows(application, collection, "entity")} == {"ada lund", "bo falk"}
        assert [row["text"] for row in state.rows(application, collection, "time_expression")] == ["1931"]
        assert all(row["time_expression_id"] for row in state.rows(application, collection, "sentence"))
        assert state.counts(application, collection) == state.true_counts(application, collection)

    def test_a_collection_deleted_while_its_batch_is_embedded_stays_deleted(
        self, application: Application, collection: str
    ) -> None:
        racing = DisturbedEncoder(
            application,
            lambda _: application.corpus.ingest.delete_collection(application.auth.access.scope(collection)),
        )
        state.stage_passages(application, collection, *MANY_PASSAGES)

        assert indexer(application, racing).run_ready() == 0
        with pytest.raises(NotFoundError):
            application.auth.access.scope(collection)
