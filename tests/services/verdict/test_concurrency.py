"""Several connections on the same state: every event once, in an order that a replay repeats, never a deadlock."""

import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from engram.composition.container import Application
from engram.context.errors import NotFoundError
from engram.storage.corpus import collections
from engram.storage.feedback_log import feedback_events
from engram.storage.learning import question_supports
from tests.conftest import CURIE, Ingest
from tests.support import lexical, state
from tests.support.threads import ThreadPoolExecutor

QUESTIONS = (
    "Who was born in Warsaw?",
    "What flows into the Baltic Sea?",
    "What happened in 1898?",
    "Where is Tokyo?",
)
GONE_IDS = range(2**40, 2**40 + 8)
"""Passages that an episode ranked and that were deleted since."""


def accept_events(application: Application, collection: str, count: int, seed: int) -> list[int]:
    """Events on few questions and few sentences, so that most of them overlap."""
    draw = random.Random(seed)
    everything = state.list_sentence_ids(application, collection)
    ranked = [*state.passages(application, collection).values(), *GONE_IDS]
    asked = [
        state.add_episode(
            application,
            collection,
            question,
            everything[:4],
            "1898" if "1898" in question else None,
            ranked=ranked,
            answer_features=state.draw_answer(number),
        )
        for number, question in enumerate(QUESTIONS)
    ]
    return [
        state.judge(
            application,
            collection,
            draw.choice(asked),
            draw.sample(everything, 3),
            confidence=draw.choice([1.0, 0.8]),
        ).event.id
        for _ in range(count)
    ]


def replay_in_order(application: Application, collection: str) -> None:
    """Learn everything anew, one event at a time, in the order in which it was applied."""
    order = state.list_applied_order(application, collection)
    target = state.collection_id(application, collection)
    state.forget_everything(application, collection)
    for event in order:
        assert application.learning.learner.apply(target, [event]) == 1


class TestOneEvent:
    def test_an_event_in_another_connections_hands_is_stepped_over(
        self, application: Application, curie: str
    ) -> None:
        target = state.collection_id(application, curie)
        first, second = accept_events(application, curie, 2, seed=2)

        def apply_while_another_holds_the_first_and_dies() -> None:
            with application.database.write() as writer:
                assert [event.id for event in feedback_events.lock_pending(writer, target, [first])] == [first]
                assert application.learning.learner.apply(target, [first, second]) == 1
                raise KeyError("dead")

        with pytest.raises(KeyError):
            apply_while_another_holds_the_first_and_dies()
        assert state.event_statuses(application, curie) == {first: "pending", second: "applied"}
        assert application.learning.learner.apply(target, [first, second]) == 1

    def test_many_connections_at_once_apply_it_once(self, application: Application, curie: str) -> None:
        target = state.collection_id(application, curie)
        applied: list[int] = []
        for event in accept_events(application, curie, 5, seed=3):
            state.together(
                *[lambda event=event: applied.append(application.learning.learner.apply(target, [event]))] * 6
            )

        assert sum(applied) == 5
        concurrent = state.list_learned(application, curie)
        replay_in_order(application, curie)
        assert state.list_learned(application, curie) == concurrent

    def test_a_worker_leaves_a_collection_to_the_one_that_learns_it(
        self, application: Application, curie: str
    ) -> None:
        (event,) = accept_events(application, curie, 1, seed=4)
        target = state.collection_id(application, curie)
        with application.database.write() as writer:
            assert collections.claim_learning(writer, target)
            assert application.learning.learner.apply_unless_busy(target, [event]) is None
        assert application.learning.learner.apply_unless_busy(target, [event]) == 1


class TestOverlappingEvents:
    @pytest.mark.parametrize("batch", [1, 7])
    def test_any_interleaving_is_the_serial_order_it_reports(
        self, application: Application, curie: str, batch: int
    ) -> None:
        target = state.collection_id(application, curie)
        events = accept_events(application, curie, 60, seed=batch)
        applied: list[int] = []

        def worker(seed: int) -> Callable[[], None]:
            mine = random.Random(seed).sample(events, len(events))

            def run_thread() -> None:
                for start in range(0, len(mine), batch):
                    applied.append(application.learning.learner.apply(target, mine[start : start + batch]))

            return run_thread

        state.together(*(worker(seed) for seed in range(6)))
        while application.learning.learner.apply(target, events):
            pass

        assert sorted(state.list_applied_order(application, curie)) == events
        assert sum(applied) <= len(events)
        concurrent = state.list_learned(application, curie)
        assert {row["event_id"] for row in concurrent["memory_audit"]} == set(events)
        assert {row["event_id"] for row in concurrent["weight_audit"]} == set(events)
        replay_in_order(application, curie)
        assert state.list_learned(application, curie) == concurrent


class TestIngestAndDeletion:
    def test_the_lexical_index_stays_true_to_the_passages(self, application: Application, curie: str) -> None:
        bodies = [{"id": f"p{n}", "text": f"Passage {n} is about bees and ants. Bees fly."} for n in range(8)]
        changed = [{**body, "text": body["text"].replace("Bees", "Wasps and bees")} for body in bodies]
        done = threading.Event()

        def ingest() -> None:
            for turn in range(4):
                state.stage_passages(application, curie, *(changed if turn % 2 else bodies), *CURIE)
                application.jobs.runner.run_ready()
            done.set()

        def delete(seed: int) -> Callable[[], None]:
            draw = random.Random(seed)

            def run_thread() -> None:
                while not done.is_set():
                    with suppress(NotFoundError):
                        application.corpus.ingest.delete_passage(
                            application.auth.access.scope(curie), draw.choice([*bodies, *CURIE])["id"]
                        )

            return run_thread

        state.together(ingest, delete(1), delete(2))

        assert lexical.load_index(application, curie) == lexical.from_texts(application, curie)
        assert state.counts(application, curie) == state.true_counts(application, curie)


class TestBesideIngest:
    def test_learning_goes_on_while_its_sentences_come_and_go(
        self, application: Application, curie: str, ingest: Ingest
    ) -> None:
        target = state.collection_id(application, curie)
        changed = [{**body, "text": body["text"].split(". ")[-1] + " It is old."} for body in CURIE]
        done = threading.Event()

        def ingest_both() -> None:
            try:
                for turn in range(6):
                    state.stage_passages(application, curie, *(changed if turn % 2 == 0 else CURIE))
                    application.jobs.runner.run_ready()
                    application.corpus.ingest.delete_passage(application.auth.access.scope(curie), "tokyo")
            finally:
                done.set()

        def learn(seed: int) -> Callable[[], None]:
            def run_thread() -> None:
                while not done.is_set():
                    for event in accept_where_possible(application, curie, seed):
                        application.learning.learner.apply(target, [event])

            return run_thread

        state.together(ingest_both, learn(1), learn(2), learn(3))
        application.learning.learner.apply_overdue(0.0, 1000)

        assert set(state.event_statuses(application, curie).values()) == {"applied"}
        assert state.counts(application, curie) == state.true_counts(application, curie)
        alive = set(state.list_sentence_ids(application, curie))
        for table in state.LEARNED:
            assert {row["sentence_id"] for row in state.rows(application, curie, table)} <= alive

    def test_a_deletion_waits_without_holding_what_learning_comes_to_next(
        self, application: Application, curie: str
    ) -> None:
        target = state.collection_id(application, curie)
        first, second = sorted(state.sentences(application, curie, "warsaw").values())
        with ThreadPoolExecutor(1) as pool:
            with application.database.write() as writer:
                question_supports.hold_sentences(writer, target, [first])
                deletion = pool.submit(
                    application.corpus.ingest.delete_passage, application.auth.access.scope(curie), "warsaw"
                )
                while not (state.count_waiting_locks(application.database) or deletion.done()):
                    time.sleep(0.01)
                assert question_supports.hold_sentences(writer, target, [second]) == [second]
            deletion.result()

        assert {first, second}.isdisjoint(state.list_sentence_ids(application, curie))

    def test_a_collection_can_be_deleted_while_it_learns_and_grows(
        self, application: Application, curie: str
    ) -> None:
        for turn in range(4):
            name = f"{curie}-{turn}"
            state.stage_passages(application, name, *CURIE)
            application.jobs.runner.run_ready()
            target = state.collection_id(application, name)
            events = accept_events(application, name, 12, seed=turn)
            state.stage_passages(application, name, *({**body, "text": f"New. {body['text']}"} for body in CURIE))
            gone: list[bool] = []

            def learn(target: int = target, events: list[int] = events) -> None:
                for event in events:
                    with suppress(NotFoundError):
                        application.learning.learner.apply(target, [event])

            def delete(name: str = name, gone: list[bool] = gone) -> None:
                application.corpus.ingest.delete_collection(application.auth.access.scope(name))
                gone.append(True)

            state.together(learn, application.jobs.runner.run_ready, delete)

            assert gone == [True]
            with pytest.raises(NotFoundError):
                application.auth.access.scope(name)


def accept_where_possible(application: Application, collection: str, seed: int) -> list[int]:
    """A few events; none if a sentence drawn for one has just been deleted."""
    try:
        return accept_events(application, collection, 3, seed)
    except Exception as error:
        if "There is no sentence" in str(error):
            return []
        raise
