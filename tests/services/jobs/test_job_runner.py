"""The runner: tries and parking, outages, stops, cancelling, claims that are lost, lanes."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import structlog

from engram.composition.container import Application
from engram.context import deadline
from engram.context.errors import LlmError, StatementGivenUpError, UnavailableError
from engram.services.jobs.job_runner import MAX_ATTEMPTS, JobThreads, Runner
from engram.services.jobs.work import JobKind, Work
from engram.storage.auth import tenants
from engram.storage.corpus import collections
from engram.storage.database import Writer
from engram.storage.jobs import job_claims, jobs
from engram.storage.jobs.job_claims import Turns
from engram.storage.jobs.jobs import Job
from tests.support import state
from tests.support.jobs import NOT_UNTIL_MADE_DUE, make_due
from tests.support.processes import eventually

Run = Callable[[Work], None]


class ScriptedHandler:
    """A handler that does what the test says, and notes what it is told to forget."""

    def __init__(self, run: Run) -> None:
        self.let_go_of: list[Job] = []
        self._run = run

    def run(self, work: Work) -> None:
        self._run(work)

    def let_go(self, _writer: Writer, job: Job) -> None:
        self.let_go_of.append(job)


class Bench:
    """One collection, kinds of the test's own, and a runner of these only."""

    def __init__(self, application: Application, collection: str) -> None:
        self.application, self.collection = application, collection
        self.database = application.database
        with self.database.write() as writer:
            self.target = collections.open_for_writing(
                writer, collection, application.models.encoder.id
            ).collection.id

    def kind(self, name: str = "test", **more: Any) -> JobKind:
        return JobKind(f"{name}-{self.collection}", f"{name}-{self.collection}", **more)

    def runner(self, run: Run, kind: JobKind | None = None, lease_seconds: float = 60.0) -> Runner:
        self.handler = ScriptedHandler(run)
        return Runner(
            self.database,
            {kind or self.kind(): self.handler},
            lease_seconds=lease_seconds,
            retry_seconds=NOT_UNTIL_MADE_DUE,
        )

    def create_collection(self, tenant: str) -> int:
        """One more collection, of a tenant of this test's own unless it is ``local``."""
        name = tenant if tenant == "local" else f"{tenant}-{self.collection}"
        with self.database.write() as writer:
            tenants.make(writer, name)
            return collections.open_for_writing(
                writer, f"{self.collection}-{uuid4().hex[:8]}", self.application.models.encoder.id, name
            ).collection.id

    def count_created(self, target: int) -> int:
        with self.database.read() as reader:
            return int(reader.scalar("SELECT created FROM job WHERE collection_id = %(c)s", {"c": target}))

    def statuses(self, *targets: int) -> list[str]:
        with self.database.read() as reader:
            return [
                reader.scalar("SELECT status FROM job WHERE collection_id = %(c)s", {"c": target})
                for target in targets
            ]

    def queue(self, kind: JobKind | None = None, received: int = 0, target: int | None = None) -> None:
        asked = kind or self.kind()
        with self.database.write() as writer:
            assert jobs.add(
                writer,
                target or self.target,
                uuid4(),
                kind=asked.name,
                lane=asked.lane,
                single=asked.single,
                payload={},
                received=received,
            )

    @property
    def rows(self) -> list[dict[str, Any]]:
        return sorted(state.rows(self.application, self.collection, "job"), key=lambda row: row["number"])

    @property
    def row(self) -> dict[str, Any]:
        (row,) = self.rows
        return row

    def finish(self, work: Work) -> None:
        with self.database.write() as writer:
            work.finish(writer, {"said": "done"})

    def cancel(self) -> None:
        with self.database.write() as writer:
            for row in jobs.page(writer, self.target, None, 10):
                jobs.request_cancel(writer, self.target, row.id)


@pytest.fixture
def bench(application: Application, collection: str) -> Bench:
    return Bench(application, collection)


@pytest.fixture
def warnings() -> Iterator[list[Any]]:
    with structlog.testing.capture_logs() as logs:
        yield logs


class TestTries:
    def test_a_job_that_is_done_has_succeeded(self, bench: Bench) -> None:
        bench.queue()
        assert bench.runner(bench.finish).run_ready() == 1
        assert (bench.row["status"], bench.row["result"], bench.row["claimant"]) == (
            "succeeded", {"said": "done"}, None,
        )  # fmt: skip
        assert bench.row["finished_at"] is not None
        assert bench.handler.let_go_of == []

    def test_one_that_fails_waits_twice_as_long_for_each_next_try_and_then_fails_for_good(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        delays: list[float] = []
        put_back = job_claims.put_back

        def put_back_and_record(writer: Writer, job: Job, **how: Any) -> bool:
            delays.append(how["after_seconds"])
            return put_back(writer, job, **how)

        def fail(_: Work) -> None:
            raise ValueError("broken")

        monkeypatch.setattr(job_claims, "put_back", put_back_and_record)
        bench.queue()
        runner = bench.runner(fail)
        for attempt in range(1, MAX_ATTEMPTS):
            assert runner.run_ready() == 0
            assert (bench.row["status"], bench.row["attempts"], bench.row["error"]) == (
                "queued", attempt, "ValueError: broken",
            )  # fmt: skip
            assert runner.run_ready() == 0  # it is not due
            make_due(bench.application)
        assert bench.handler.let_go_of == []
        assert runner.run_ready() == 1

        assert (bench.row["status"], bench.row["error"]) == ("failed", "ValueError: broken")
        assert len(bench.handler.let_go_of) == 1
        assert delays == [NOT_UNTIL_MADE_DUE * times for times in (1, 2, 4, 8)]

    def test_tries_count_from_where_it_last_came_forward(self, bench: Bench) -> None:
        def advance_and_fail(work: Work) -> None:
            with bench.database.write() as writer:
                work.advance(writer, created=1)
            raise ValueError("broken")

        bench.queue(received=100)
        runner = bench.runner(advance_and_fail)
        for _ in range(MAX_ATTEMPTS + 2):
            make_due(bench.application)
            runner.run_ready()
        assert (bench.row["status"], bench.row["created"], bench.row["attempts"]) == ("queued", MAX_ATTEMPTS + 2, 1)

    def test_statement_timeout_counts_as_an_attempt(self, bench: Bench) -> None:
        def give_up(_: Work) -> None:
            raise StatementGivenUpError("too slow")

        bench.queue()
        bench.runner(give_up).run_ready()
        assert (bench.row["status"], bench.row["attempts"]) == ("queued", 1)

    @pytest.mark.parametrize(
        ("failure", "shown"),
        [
            (
                psycopg.errors.UndefinedFunction("function secret() of 10.0.0.7"),
                "UndefinedFunction: the log says more.",
            ),
            (
                StatementGivenUpError("Postgres: words of its own", public_detail="Postgres gave up."),
                "StatementGivenUpError: Postgres gave up.",
            ),
        ],
    )
    def test_a_job_does_not_tell_the_words_of_a_server(self, bench: Bench, failure: Exception, shown: str) -> None:
        def fail(_: Work) -> None:
            raise failure

        bench.queue()
        bench.runner(fail).run_ready()
        assert bench.row["error"] == shown

    def test_a_handler_that_returns_before_the_end_is_one_that_fails(self, bench: Bench) -> None:
        bench.queue()
        assert bench.runner(lambda _: None).run_ready() == 0
        assert bench.row["error"] == "RuntimeError: its handler returned before the end"

    def test_an_end_that_does_not_commit_is_none(self, bench: Bench) -> None:
        def fail_at_commit(work: Work) -> None:
            with bench.database.write() as writer:
                work.finish(writer)
                raise ValueError("commit")

        bench.queue()
        assert bench.runner(fail_at_commit).run_ready() == 0
        assert (bench.row["status"], bench.row["error"]) == ("queued", "ValueError: commit")

    def test_the_llm_is_waited_for(self, bench: Bench) -> None:
        def raise_llm_error(_: Work) -> None:
            raise LlmError("no answer")

        bench.queue()
        assert bench.runner(raise_llm_error).run_ready() == 0
        assert (bench.row["status"], bench.row["attempts"], bench.row["error"]) == ("queued", 0, "no answer")

    def test_an_outage_is_no_try_and_leaves_the_job_in_hand(self, bench: Bench) -> None:
        away = [True]

        def need(work: Work) -> None:
            if away:
                raise UnavailableError("gone")
            bench.finish(work)

        bench.queue()
        runner, me = bench.runner(need), uuid4()
        job = runner.claim(me, runner.lanes)
        assert job is not None
        with pytest.raises(UnavailableError):
            runner.carry_out(job, lambda: False)
        assert (bench.row["status"], bench.row["attempts"]) == ("running", 0)
        assert runner.claim(uuid4(), runner.lanes) is None
        away.clear()
        again = runner.claim(me, runner.lanes)
        assert again is not None
        assert runner.carry_out(again, lambda: False)
        assert (bench.row["status"], bench.row["attempts"]) == ("succeeded", 0)


class TestStoppedJobs:
    def test_stopped_job_is_returned_to_the_queue(self, bench: Bench) -> None:
        def advance_until_stopped(work: Work) -> None:
            while not work.should_stop():
                with bench.database.write() as writer:
                    work.advance(writer, created=1)

        bench.queue(received=9)
        answers = iter([False, False, *[True] * 9])
        assert bench.runner(advance_until_stopped).run_ready(lambda: next(answers)) == 0
        assert (bench.row["status"], bench.row["created"], bench.row["attempts"], bench.row["error"]) == (
            "queued", 2, 0, None,
        )  # fmt: skip
        assert bench.runner(bench.finish).run_ready() == 1
        assert bench.row["created"] == 2

    def test_one_that_is_cancelled_ends_between_two_batches_and_says_how_far_it_came(self, bench: Bench) -> None:
        def cancel_in_third(work: Work) -> None:
            while not work.should_stop():
                with bench.database.write() as writer:
                    work.advance(writer, created=10)
                if bench.row["created"] == 30:
                    bench.cancel()

        bench.queue(received=100)
        assert bench.runner(cancel_in_third).run_ready() == 1
        # The fourth batch was begun before it was heard of.
        assert (bench.row["status"], bench.row["created"], bench.row["received"]) == ("cancelled", 40, 100)
        assert bench.row["finished_at"] is not None
        assert len(bench.handler.let_go_of) == 1

    def test_one_that_says_nothing_hears_of_it_by_its_beat(self, bench: Bench) -> None:
        def wait(work: Work) -> None:
            bench.cancel()
            eventually(work.should_stop)

        bench.queue()
        assert bench.runner(wait, lease_seconds=1.0).run_ready() == 1
        assert bench.row["status"] == "cancelled"

    def test_one_that_is_to_be_cancelled_when_its_worker_is_lost_is_not_begun_again(self, bench: Bench) -> None:
        bench.queue()
        runner = bench.runner(lambda _: pytest.fail("begun"))
        assert runner.claim(uuid4(), runner.lanes) is not None
        bench.cancel()
        make_due(bench.application)
        assert runner.run_ready() == 1
        assert bench.row["status"] == "cancelled"

    def test_one_that_was_done_when_it_was_cancelled_has_succeeded(self, bench: Bench) -> None:
        def cancel_and_finish(work: Work) -> None:
            bench.cancel()
            bench.finish(work)

        bench.queue()
        bench.runner(cancel_and_finish).run_ready()
        assert bench.row["status"] == "succeeded"


class TestClaims:
    def test_a_worker_that_was_overtaken_keeps_nothing_of_its_batch(
        self, bench: Bench, warnings: list[Any]
    ) -> None:
        def overtaken(work: Work) -> None:
            make_due(bench.application)
            heir = other.claim(uuid4(), other.lanes)
            assert heir is not None
            with bench.database.write() as writer:
                writer.execute("UPDATE collection SET passage_count = 99 WHERE id = %(c)s", {"c": bench.target})
                work.advance(writer, created=1)

        bench.queue()
        other = bench.runner(bench.finish)
        assert bench.runner(overtaken).run_ready() == 0
        assert (bench.row["status"], bench.row["created"], bench.row["attempts"]) == ("running", 0, 1)
        assert state.counts(bench.application, bench.collection)[0] == 0
        assert "job taken over or gone" in {entry["event"] for entry in warnings}

    def test_failure_of_an_overtaken_worker_is_ignored(self, bench: Bench) -> None:
        def overtaken(_: Work) -> None:
            make_due(bench.application)
            assert other.claim(uuid4(), other.lanes) is not None
            raise ValueError("broken")

        bench.queue()
        other = bench.runner(bench.finish)
        assert bench.runner(overtaken).run_ready() == 0
        assert (bench.row["status"], bench.row["error"]) == ("running", "Its worker was lost.")

    def test_a_lease_is_put_off_while_the_job_lasts(self, bench: Bench) -> None:
        def outlast_lease(work: Work) -> None:
            seen = {bench.row["due_at"]}
            eventually(lambda: seen.add(bench.row["due_at"]) or len(seen) > 2)
            assert other.run_ready() == 0
            bench.finish(work)

        bench.queue()
        other = bench.runner(bench.finish)
        assert bench.runner(outlast_lease, lease_seconds=5.0).run_ready() == 1

    def test_one_that_outlives_none_of_its_workers_fails(self, bench: Bench) -> None:
        bench.queue()
        runner = bench.runner(lambda _: pytest.fail("begun"))
        for _ in range(MAX_ATTEMPTS):
            make_due(bench.application)
            assert runner.claim(uuid4(), runner.lanes) is not None
        make_due(bench.application)
        assert runner.run_ready() == 1
        assert (bench.row["status"], bench.row["error"]) == ("failed", "Its worker was lost.")
        assert len(bench.handler.let_go_of) == 1


class TestJobThreads:
    def test_a_lane_does_not_wait_for_another(self, bench: Bench) -> None:
        slow, quick = bench.kind("slow"), bench.kind("quick")
        done = threading.Event()

        def wait(work: Work) -> None:
            assert done.wait(30)
            bench.finish(work)

        handlers = {
            slow: ScriptedHandler(wait),
            quick: ScriptedHandler(lambda work: bench.finish(work) or done.set()),
        }
        bench.queue(slow)
        bench.queue(quick)
        with JobThreads(Runner(bench.database, handlers, lease_seconds=60.0), lambda: False) as crew:
            assert crew.step()
            assert crew.step()
        assert [row["status"] for row in bench.rows] == ["succeeded"] * 2

    def test_a_lanes_thread_goes_on_with_the_next_job(self, bench: Bench) -> None:
        for _ in range(5):
            bench.queue()
        with JobThreads(bench.runner(bench.finish), lambda: False) as crew:
            assert crew.step()
        assert [row["status"] for row in bench.rows] == ["succeeded"] * 5

    def test_whatever_the_number_of_kinds_one_statement_asks(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        asked: list[int] = []
        claim = job_claims.claim

        def claim_and_count(writer: Writer, *arguments: Any) -> Job | None:
            asked.append(1)
            return claim(writer, *arguments)

        monkeypatch.setattr(job_claims, "claim", claim_and_count)
        handlers = {bench.kind(f"kind-{n}"): ScriptedHandler(bench.finish) for n in range(7)}
        with JobThreads(Runner(bench.database, handlers, lease_seconds=60.0), lambda: False) as crew:
            assert not crew.step()
            assert not crew.step()
        assert len(asked) == 2

    def test_outage_in_a_thread_is_raised_and_the_job_resumed(self, bench: Bench) -> None:
        away = [True]

        def need(work: Work) -> None:
            if away.pop() if away else False:
                raise UnavailableError("gone")
            bench.finish(work)

        bench.queue()
        with JobThreads(bench.runner(need), lambda: False) as crew:
            assert crew.step()
            with pytest.raises(UnavailableError):
                eventually(lambda: crew.step() and False)
            assert crew.step()
        assert (bench.row["status"], bench.row["attempts"]) == ("succeeded", 0)


class TestTurns:
    """Tenants take turns first, then collections."""

    def test_another_tenants_job_runs_beside_a_long_one(self, bench: Bench) -> None:
        began, done = threading.Event(), threading.Event()

        def do_job(job: Work) -> None:
            if job.job.collection_id == bench.target:
                began.set()
                assert done.wait(30)
            else:
                done.set()
            bench.finish(job)

        bench.queue()
        with JobThreads(bench.runner(do_job), lambda: False) as crew:
            assert crew.step()
            assert began.wait(30)
            other = bench.create_collection("other")
            bench.queue(target=other)
            assert crew.step()
        assert bench.statuses(bench.target, other) == ["succeeded", "succeeded"]

    def test_a_tenant_has_one_job_of_a_lane_in_hand(self, bench: Bench) -> None:
        first, second = bench.target, bench.create_collection("local")
        done = threading.Event()

        def do_job(job: Work) -> None:
            assert done.wait(30)
            bench.finish(job)

        bench.queue(target=first)
        bench.queue(target=second)
        with JobThreads(bench.runner(do_job), lambda: False) as crew:
            assert crew.step()
            assert not crew.step()
            done.set()
        assert bench.statuses(first, second) == ["succeeded", "succeeded"]

    def test_a_job_goes_back_after_its_batch_while_another_collection_waits(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("engram.services.jobs.job_runner.TURN_SECONDS", 0.0)
        first, second = bench.target, bench.create_collection("local")
        batches: list[int] = []

        def do_job(job: Work) -> None:
            for _ in range(3 - bench.count_created(job.job.collection_id)):
                with bench.database.write() as writer:
                    job.advance(writer, created=1)
                batches.append(job.job.collection_id)
                if bench.count_created(job.job.collection_id) < 3 and job.should_stop():
                    return
            bench.finish(job)

        bench.queue(target=first)
        bench.queue(target=second)
        with JobThreads(bench.runner(do_job), lambda: False) as crew:
            assert crew.step()
        assert batches == [first, second, first, second, first, second]
        assert bench.statuses(first, second) == ["succeeded", "succeeded"]

    def test_job_without_waiting_successors_continues_past_its_turn(
        self, bench: Bench, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("engram.services.jobs.job_runner.TURN_SECONDS", 0.0)
        begun: list[int] = []

        def do_job(job: Work) -> None:
            begun.append(1)
            for _ in range(3):
                with bench.database.write() as writer:
                    job.advance(writer, created=1)
                assert not job.should_stop()
            bench.finish(job)

        bench.queue()
        with JobThreads(bench.runner(do_job), lambda: False) as crew:
            assert crew.step()
        assert len(begun) == 1

    def test_the_tenant_with_fewer_running_jobs_comes_first(self, bench: Bench) -> None:
        """So several workers share one tenant's jobs only while nobody else waits."""
        first, second, other = bench.target, bench.create_collection("local"), bench.create_collection("other")
        for target in (first, second, other):
            bench.queue(target=target)
        runner = bench.runner(bench.finish)
        claimed = [runner.claim(uuid4(), runner.lanes) for _ in range(3)]
        assert [job.collection_id for job in claimed if job is not None] == [first, other, second]

    def test_the_tenant_that_was_served_least_recently_comes_first(self, bench: Bench) -> None:
        first, other = bench.target, bench.create_collection("other")
        bench.queue(target=first)
        bench.queue(target=other)
        runner, lane = bench.runner(bench.finish), bench.kind().lane
        job = runner.claim(
            uuid4(), runner.lanes, turns=Turns(served={(lane, "local"): 2, (lane, name_other_tenant(bench)): 1})
        )
        assert job is not None
        assert job.collection_id == other

    def test_running_jobs_count_before_turns(self, bench: Bench) -> None:
        second, other = bench.create_collection("local"), bench.create_collection("other")
        bench.queue()
        runner, lane = bench.runner(bench.finish), bench.kind().lane
        assert runner.claim(uuid4(), runner.lanes) is not None
        bench.queue(target=second)
        bench.queue(target=other)
        job = runner.claim(uuid4(), runner.lanes, turns=Turns(served={(lane, name_other_tenant(bench)): 1}))
        assert job is not None
        assert job.collection_id == other

    def test_a_cancellation_ends_a_computation(self, bench: Bench) -> None:
        """Between two batches of the encoder, which is long before the batch of the job is whole."""

        def compute(_: Work) -> None:
            bench.cancel()
            while True:
                deadline.check_work()
                time.sleep(0.01)

        bench.queue()
        assert bench.runner(compute).run_ready() == 1
        assert bench.row["status"] == "cancelled"


def name_other_tenant(bench: Bench) -> str:
    return f"other-{bench.collection}"
