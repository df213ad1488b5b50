"""Verdicts taken back: what is learned is, to the last bit, what it would be if they had never come."""

import random
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError, NotFoundError
from engram.services.jobs.job_runner import Runner
from engram.services.revocation.derived_state import DerivedState
from engram.services.revocation.revocation_service import RevocationService
from engram.storage.database import Writer
from engram.storage.feedback_log import feedback_events, logged_verdicts
from engram.storage.learning import learned_weights
from engram.storage.learning.learned_weights import Days
from engram.wings.published.parts import published_of
from tests.conftest import CURIE, Ingest
from tests.support import evolving, state, threads, undo
from tests.support.jobs import run_again, runner


def revoke(application: Application, collection: str, events: Sequence[int]) -> None:
    for event in events:
        assert (
            application.learning.revocation.revoke(application.auth.access.scope(collection), event).status
            == "revoked"
        )


def log_of(application: Application, collection: str) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in state.rows(application, collection, "feedback_event")}


class TestStates:
    @pytest.mark.wing("published")
    @pytest.mark.parametrize(("seed", "batch"), [(1, 1), (2, 7), (3, 24)])
    def test_it_is_as_if_the_events_had_never_come(
        self, application: Application, curie: str, seed: int, batch: int
    ) -> None:
        events = undo.stream(application, curie, 24, seed)
        first, second = events[:14], events[14:]
        undo.apply(application, curie, first, batch)
        evolving.evolve(application, application.auth.access.scope(curie))
        undo.apply(application, curie, second, batch)
        draw = random.Random(seed)
        taken = draw.sample(first, 4) + draw.sample(second, 4)
        revoke(application, curie, taken)
        after = undo.list_learned(application, curie)
        undo.assert_verified(application, curie)

        undo.forgotten(application, curie)
        undo.apply(application, curie, [event for event in first if event not in taken])
        evolving.evolve(application, application.auth.access.scope(curie))
        undo.apply(application, curie, [event for event in second if event not in taken])
        undo.assert_same(after, undo.list_learned(application, curie))
        assert bool(after["passage_key"]) == ("published" in application.wing_services)
        assert after["question_support"]
        channels = {"task", "time"} if "published" in application.wing_services else set()
        assert {row["channel"] for row in after["sentence_memory"]} == channels

    def test_the_order_in_which_they_were_applied_counts_not_that_of_their_ids(
        self, application: Application, curie: str
    ) -> None:
        events = random.Random(5).sample(order := undo.stream(application, curie, 12, 5), 12)
        assert events != order
        undo.apply(application, curie, events)
        revoke(application, curie, events[2:4])
        after = undo.list_learned(application, curie)
        undo.forgotten(application, curie)
        undo.apply(application, curie, [*events[:2], *events[4:]])
        undo.assert_same(after, undo.list_learned(application, curie))

    def test_revoking_all_verdicts_clears_learned_state(self, application: Application, curie: str) -> None:
        events = undo.stream(application, curie, 10, seed=4)
        undo.apply(application, curie, events, 10)
        graph = state.snapshot(application, curie, (*state.GRAPH, *state.LEXICAL))
        evolving.evolve(application, application.auth.access.scope(curie))
        revoke(application, curie, events)
        left = undo.list_learned(application, curie)
        # An evolution that took in nothing that counts stays, empty, as part of the lineage.
        generations = [0] if "published" in application.wing_services else []
        assert [row["events"] for row in left.pop("key_generation")] == generations
        assert all(row["waiting"] == 0 for row in left.pop("key_evolution"))
        assert not any(left.values()), left
        assert state.snapshot(application, curie, tuple(graph)) == graph
        log = log_of(application, curie)
        assert [log[event]["status"] for event in events] == ["revoked"] * 10
        with application.database.read() as reader:
            said = logged_verdicts.read(reader, state.collection_id(application, curie), events)
        assert all(said[event].supports for event in events)
        undo.assert_verified(application, curie)

    def test_a_question_reads_as_the_first_event_that_is_left_put_it(
        self, application: Application, curie: str
    ) -> None:
        sentence = state.list_sentence_ids(application, curie)[0]
        texts = ("Who was born in Warsaw?", "WHO was born in   Warsaw?")
        events = [
            state.judge(
                application, curie, state.add_episode(application, curie, text, []), [sentence], wait=True
            ).event.id
            for text in texts
        ]
        assert [row["text"] for row in state.rows(application, curie, "question")] == [texts[0]]
        revoke(application, curie, events[:1])
        assert [row["text"] for row in state.rows(application, curie, "question")] == [texts[1]]
        (support,) = state.rows(application, curie, "question_support")
        assert support["update_count"] == 1
        revoke(application, curie, events[1:])
        assert state.rows(application, curie, "question") == []

    def test_completeness_is_that_of_the_last_verdict_left(self, application: Application, curie: str) -> None:
        sentence = state.list_sentence_ids(application, curie)[0]
        query_id = state.add_episode(application, curie, "Who was born in Warsaw?", [])
        events = [
            state.judge(application, curie, query_id, [sentence], partial=partial, wait=True).event.id
            for partial in (False, True)
        ]
        complete = [row["complete"] for row in state.rows(application, curie, "question_support")]
        assert complete == [False]
        revoke(application, curie, events[1:])
        complete = [row["complete"] for row in state.rows(application, curie, "question_support")]
        assert complete == [True]

    def test_revocation_does_not_restore_memories_of_changed_passages(
        self, application: Application, curie: str, ingest: Ingest
    ) -> None:
        events = undo.stream(application, curie, 12, seed=6)
        undo.apply(application, curie, events, 4)
        evolving.evolve(application, application.auth.access.scope(curie))
        ingest(*({**body, "text": body["text"].split(". ")[-1] + " It is old."} for body in CURIE), into=curie)
        application.corpus.ingest.delete_passage(application.auth.access.scope(curie), "tokyo")
        undo.assert_verified(application, curie)
        revoke(application, curie, events[::2])
        undo.assert_verified(application, curie)
        alive = set(state.list_sentence_ids(application, curie))
        assert {row["sentence_id"] for row in state.rows(application, curie, "sentence_memory")} <= alive

    @pytest.mark.wing("published")
    def test_a_time_memory_goes_back_to_the_expression_that_it_began_as(
        self, application: Application, curie: str
    ) -> None:
        undo.apply(application, curie, events := undo.stream(application, curie, 12, seed=8), 12)
        timed = [row for row in state.rows(application, curie, "sentence_memory") if row["channel"] == "time"]
        assert timed
        with application.database.write() as writer:
            writer.execute(
                "UPDATE sentence SET time_expression_id = NULL WHERE id = ANY(%(ids)s)",
                {"ids": [row["sentence_id"] for row in timed]},
            )
        revoke(application, curie, events[:6])
        undo.assert_verified(application, curie)

    @pytest.mark.wing("published")
    def test_evidence_that_was_rolled_back_can_be_taken_back(self, application: Application, curie: str) -> None:
        first, second, third = (undo.stream(application, curie, 8, seed) for seed in (11, 12, 13))
        for events in (first, second, third):
            undo.apply(application, curie, events, 8)
            assert published_of(application).evolve.evolve(application.auth.access.scope(curie)) is not None
        published_of(application).evolve.roll_back(application.auth.access.scope(curie), 1)
        undo.assert_verified(application, curie)
        revoke(application, curie, [*first[:3], *second[:3]])
        undo.assert_verified(application, curie)
        before = undo.list_learned(application, curie)
        published_of(application).evolve.roll_back(application.auth.access.scope(curie), 3)
        undo.assert_verified(application, curie)
        published_of(application).evolve.roll_back(application.auth.access.scope(curie), 1)
        undo.assert_same(before, undo.list_learned(application, curie))


class TestEvents:
    def test_repeated_revocation_changes_nothing(self, application: Application, curie: str) -> None:
        undo.apply(application, curie, events := undo.stream(application, curie, 4, seed=1))
        first = application.learning.revocation.revoke(application.auth.access.scope(curie), events[0])
        before = undo.list_learned(application, curie), log_of(application, curie)
        assert application.learning.revocation.revoke(application.auth.access.scope(curie), events[0]) == first
        assert (undo.list_learned(application, curie), log_of(application, curie)) == before
        assert first.revoked_at is not None

    @pytest.mark.parametrize("status", ["pending", "parked"])
    def test_a_revoked_verdict_that_waits_is_never_applied(
        self, application: Application, curie: str, status: str
    ) -> None:
        (event,) = undo.stream(application, curie, 1, seed=1)
        with application.database.write() as writer:
            writer.execute("UPDATE feedback_event SET status = %(s)s WHERE id = %(id)s", {"s": status, "id": event})
        assert (
            application.learning.revocation.revoke(application.auth.access.scope(curie), event).applied_at is None
        )
        assert application.learning.learner.apply(state.collection_id(application, curie), [event]) == 0
        application.learning.learner.apply_overdue(0.0, 100)
        assert log_of(application, curie)[event]["status"] == "revoked"
        assert not any(undo.list_learned(application, curie).values())

    def test_unknown_event_raises_not_found(self, application: Application, curie: str) -> None:
        with pytest.raises(NotFoundError, match=f"no verdict {2**62}"):
            application.learning.revocation.revoke(application.auth.access.scope(curie), 2**62)

    def test_an_event_of_another_collection_is_unknown(
        self, application: Application, curie: str, ingest: Ingest
    ) -> None:
        (event,) = undo.stream(application, curie, 1, seed=1)
        ingest(*CURIE, into=f"{curie}-other")
        with pytest.raises(NotFoundError):
            application.learning.revocation.revoke(application.auth.access.scope(f"{curie}-other"), event)
        assert log_of(application, curie)[event]["status"] == "pending"


class TestBesideWorkers:
    def test_it_waits_for_a_worker_that_is_applying_the_event(self, application: Application, curie: str) -> None:
        (event,) = undo.stream(application, curie, 1, seed=1)
        target = state.collection_id(application, curie)
        done = threading.Event()

        def take_back() -> None:
            application.learning.revocation.revoke(application.auth.access.scope(curie), event)
            done.set()

        thread = threads.make_thread(take_back)
        with application.database.write() as writer:
            assert len(feedback_events.lock_pending(writer, target, [event])) == 1
            thread.start()
            state.wait_for_lock(application.database)
            assert not done.is_set()
            feedback_events.mark_applied(writer, target, {event: 1}, {event: application.models.noise})
        thread.join(30)
        assert log_of(application, curie)[event]["status"] == "revoked"

    def test_two_workers_and_two_who_take_back_leave_what_is_left(
        self, application: Application, curie: str
    ) -> None:
        events = undo.stream(application, curie, 60, seed=21)
        target = state.collection_id(application, curie)
        taken = random.Random(3).sample(events, 24)

        def learn(seed: int) -> None:
            mine = random.Random(seed).sample(events, len(events))
            for start in range(0, len(mine), 5):
                application.learning.learner.apply(target, mine[start : start + 5])

        def steer() -> None:
            for _ in range(4):
                evolving.evolve(application, application.auth.access.scope(curie))

        state.together(
            lambda: learn(1),
            lambda: learn(2),
            lambda: revoke(application, curie, taken[:16]),
            lambda: revoke(application, curie, taken[8:]),
            steer,
        )
        while application.learning.learner.apply(target, events):
            pass
        statuses = state.event_statuses(application, curie)
        assert {event for event, status in statuses.items() if status == "revoked"} == set(taken)
        assert set(statuses.values()) == {"applied", "revoked"}
        undo.assert_verified(application, curie)
        tables = (
            "sentence_memory",
            "memory_audit",
            "question",
            "question_support",
            "learned_weights",
            "key_credit",
        )
        after = undo.list_learned(application, curie)
        order = state.list_applied_order(application, curie)
        undo.forgotten(application, curie)
        undo.apply(application, curie, order)
        again = undo.list_learned(application, curie)
        for table in tables:
            assert again[table] == after[table], table

    def test_it_goes_on_while_sentences_come_and_go(
        self, application: Application, curie: str, ingest: Ingest
    ) -> None:
        events = undo.stream(application, curie, 30, seed=22)
        undo.apply(application, curie, events, 10)
        changed = [{**body, "text": body["text"].split(". ")[-1] + " It is old."} for body in CURIE]

        def ingest_both() -> None:
            for turn in range(4):
                ingest(*(changed if turn % 2 == 0 else CURIE), into=curie)

        state.together(ingest_both, lambda: revoke(application, curie, events[:20]))
        undo.assert_verified(application, curie)


class WithdrawnEvents(DerivedState):
    """Keeps the events that it was told to withdraw, each time with their status then."""

    def __init__(self) -> None:
        self.withdrawn: list[dict[int, str]] = []

    def withdraw(self, writer: Writer, collection_id: int, events: Sequence[int]) -> None:
        statuses = {event: feedback_events.find(writer, collection_id, event) for event in events}
        self.withdrawn.append({event: found.status for event, found in statuses.items() if found is not None})


def test_states_of_wings_withdraw_applied_events_in_the_same_transaction(
    application: Application, curie: str
) -> None:
    events = undo.stream(application, curie, 4, seed=3)
    undo.apply(application, curie, events[:3])
    derived = WithdrawnEvents()
    revocation = RevocationService(application.database, [derived])
    for event in (events[0], events[3], events[0]):
        revocation.revoke(application.auth.access.scope(curie), event)
    assert derived.withdrawn == [{events[0]: "revoked"}]


class TestJobs:
    def service(self, application: Application, batch_size: int) -> RevocationService:
        return RevocationService(application.database, application.hooks.derived_states, batch_size=batch_size)

    def runner(self, application: Application, batch_size: int) -> Runner:
        return runner(application, revocation=self.service(application, batch_size))

    def test_a_judge_is_taken_back_by_a_job(self, application: Application, curie: str) -> None:
        events = undo.stream(application, curie, 20, seed=31)
        undo.apply(application, curie, events[:16], 4)
        careless = [event for event in events if log_of(application, curie)[event]["judge"] == "careless"]
        job_id = application.learning.revocation.request(application.auth.access.scope(curie), judge="careless")
        waiting = [event for event in careless if event in events[16:]]
        assert all(log_of(application, curie)[event]["status"] == "revoked" for event in waiting)
        queued = application.jobs.jobs.job(application.auth.access.scope(curie), job_id)
        assert (queued.status, queued.received, queued.updated) == ("queued", len(careless), len(waiting))

        late = state.judge(application, curie, self.add_episode(application, curie), judge="careless").event.id
        assert application.jobs.runner.run_ready() == 1
        job = application.jobs.jobs.job(application.auth.access.scope(curie), job_id)
        assert (job.status, job.received, job.updated, job.unchanged) == (
            "succeeded",
            len(careless),
            len(careless),
            0,
        )
        log = log_of(application, curie)
        assert {event for event in log if log[event]["status"] == "revoked"} == set(careless)
        assert log[late]["status"] == "pending"
        after = undo.list_learned(application, curie)
        undo.forgotten(application, curie)
        undo.apply(application, curie, [event for event in events[:16] if event not in careless])
        undo.assert_same(after, undo.list_learned(application, curie))

    def test_a_killed_job_goes_on_where_it_was(
        self, application: Application, curie: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        events = undo.stream(application, curie, 12, seed=32)
        undo.apply(application, curie, events, 12)
        job_id = application.learning.revocation.request(application.auth.access.scope(curie))
        service = self.service(application, batch_size=5)
        withdraw, calls = learned_weights.withdraw, []

        def die(*arguments: Any) -> Days:
            calls.append(1)
            withdrawn = withdraw(*arguments)
            if len(calls) == 2:
                raise KeyboardInterrupt
            return withdrawn

        monkeypatch.setattr(learned_weights, "withdraw", die)
        with pytest.raises(KeyboardInterrupt):
            runner(application, revocation=service).run_ready()
        assert sorted(state.event_statuses(application, curie).values()) == ["applied"] * 7 + ["revoked"] * 5
        undo.assert_verified(application, curie)
        half = application.jobs.jobs.job(application.auth.access.scope(curie), job_id)
        assert (half.status, half.received, half.updated) == ("running", 12, 5)

        assert run_again(application, self.runner(application, batch_size=5)) == 1
        job = application.jobs.jobs.job(application.auth.access.scope(curie), job_id)
        assert (job.status, job.updated) == ("succeeded", 12)
        undo.assert_verified(application, curie)

    def test_one_that_is_cancelled_leaves_what_it_did_and_the_rest_counting(
        self, application: Application, curie: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        undo.apply(application, curie, undo.stream(application, curie, 12, seed=36), 12)
        job_id = application.learning.revocation.request(application.auth.access.scope(curie))
        service = self.service(application, batch_size=5)
        mark = feedback_events.mark_revoked

        def cancel(*arguments: Any) -> None:
            application.jobs.jobs.cancel(application.auth.access.scope(curie), job_id)
            mark(*arguments)

        monkeypatch.setattr(feedback_events, "mark_revoked", cancel)
        assert runner(application, revocation=service).run_ready() == 1

        job = application.jobs.jobs.job(application.auth.access.scope(curie), job_id)
        assert (job.status, job.received, job.updated, job.waiting) == ("cancelled", 12, 5, 7)
        assert sorted(state.event_statuses(application, curie).values()) == ["applied"] * 7 + ["revoked"] * 5
        undo.assert_verified(application, curie)

    @pytest.mark.wing("published")
    def test_failing_revocation_batch_fails_the_job_without_changes(
        self, application: Application, curie: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        undo.apply(application, curie, undo.stream(application, curie, 4, seed=34), 4)
        before = undo.list_learned(application, curie)
        job_id = application.learning.revocation.request(application.auth.access.scope(curie))

        def fail(*_: Any) -> list[int]:
            raise ValueError("broken")

        with monkeypatch.context() as patch:
            patch.setattr(published_of(application).attribution, "withdraw", fail)
            for _ in range(5):
                run_again(application, application.jobs.runner)
        job = application.jobs.jobs.job(application.auth.access.scope(curie), job_id)
        assert (job.status, job.error) == ("failed", "ValueError: broken")
        undo.assert_same(before, undo.list_learned(application, curie))

    def test_a_span_of_time_is_half_open(self, application: Application, curie: str) -> None:
        events = undo.stream(application, curie, 4, seed=35)
        start = datetime(2026, 5, 1, tzinfo=UTC)
        with application.database.write() as writer:
            for hour, event in enumerate(events):
                writer.execute(
                    "UPDATE feedback_event SET received_at = %(at)s WHERE id = %(id)s",
                    {"at": start + timedelta(hours=hour), "id": event},
                )
        application.learning.revocation.request(
            application.auth.access.scope(curie),
            since=start + timedelta(hours=1),
            before=start + timedelta(hours=3),
        )
        application.jobs.runner.run_ready()
        statuses = state.event_statuses(application, curie)
        assert [statuses[event] for event in events] == ["pending", "revoked", "revoked", "pending"]
        with pytest.raises(InvalidRequestError, match="'from'"):
            application.learning.revocation.request(application.auth.access.scope(curie), since=start, before=start)

    @staticmethod
    def add_episode(application: Application, collection: str) -> Any:
        return state.add_episode(application, collection, "Who was born in Warsaw?", [])
