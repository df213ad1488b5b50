"""Keys are the same in whatever order, in whatever batches and by however many verdicts come."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engram.composition.container import Application
from engram.core.learning.logged_verdict import Expansion
from engram.services.verdict.learn import VerdictLearner
from engram.wings.published.core import evolution as core
from engram.wings.published.core.evolution import KeyRules
from engram.wings.published.parts import published_of
from tests.support import state
from tests.support.encoder import HALF_PRECISION
from tests.support.evolving import (
    ELEMENT,
    PASSAGES,
    QUESTION,
    REWORDED,
    RIVER,
    SPECIFIC,
    build_learning,
    forget_keys,
    give,
    list_learned,
    rows,
    services,
    stream,
    vector,
)
from tests.support.threads import ThreadPoolExecutor


class TestOrder:
    def test_neither_order_nor_batches_matter_and_a_replay_gives_identical_keys(
        self, application: Application, curie: str
    ) -> None:
        events = stream(application, curie, 24, seed=5)
        target = state.collection_id(application, curie)
        calm = build_learning(application, most_waiting=10_000, patience=10_000)
        calm.apply(target, events)
        published_of(application).evolve.evolve(application.auth.access.scope(curie))
        expected = list_learned(application, curie)
        assert expected["passage_key"]
        for seed in (1, 2):
            forget_keys(application, curie)
            shuffled = random.Random(seed).sample(events, len(events))
            for at in range(0, len(shuffled), 1 if seed == 1 else 7):
                calm.apply(target, shuffled[at : at + (1 if seed == 1 else 7)])
            published_of(application).evolve.evolve(application.auth.access.scope(curie))
            assert list_learned(application, curie) == expected

    def test_concurrent_workers_and_clients_lose_and_double_no_event(
        self, application: Application, curie: str
    ) -> None:
        target = state.collection_id(application, curie)
        workers = [build_learning(application, most_waiting=10) for _ in range(2)]
        posted: list[int] = []

        def post(seed: int) -> None:
            posted.extend(stream(application, curie, 15, seed))

        def run_worker(worker: VerdictLearner) -> None:
            for _ in range(200):
                with application.database.read() as reader:
                    waiting = reader.rows(
                        """
                        SELECT id FROM feedback_event WHERE collection_id = %(c)s AND status = 'pending' LIMIT 5
                        """,
                        {"c": target},
                    )
                if not waiting and len(posted) == 60:
                    return
                worker.apply(target, [row[0] for row in waiting])

        state.together(
            *(lambda seed=seed: post(seed) for seed in range(4)),
            *(lambda worker=worker: run_worker(worker) for worker in workers),
        )
        assert set(state.event_statuses(application, curie).values()) == {"applied"}
        evidence = rows(application, curie, "key_evidence")
        assert sorted(row["event_id"] for row in evidence) == sorted(posted)
        published_of(application).evolve.evolve(application.auth.access.scope(curie))
        after = list_learned(application, curie)
        forget_keys(application, curie)
        calm = build_learning(application, most_waiting=10_000, patience=10_000)
        for event in sorted(posted):
            calm.apply(target, [event])
        published_of(application).evolve.evolve(application.auth.access.scope(curie))
        again = list_learned(application, curie)
        for table in ("key_credit", "expansion_memory", "evolved_posting"):
            assert again[table] == after[table]
        keys = ("passage_id", "vector", "units", "scores")
        assert [[row[key] for key in keys] for row in again["passage_key"]] == [
            [row[key] for key in keys] for row in after["passage_key"]
        ]

    def test_evolving_and_rolling_back_while_others_learn_does_not_deadlock(
        self, application: Application, curie: str
    ) -> None:
        events = stream(application, curie, 40, seed=9)
        target = state.collection_id(application, curie)

        def steer() -> None:
            for _ in range(15):
                published_of(application).evolve.evolve(application.auth.access.scope(curie))
                number = (
                    published_of(application).evolve.load_standing(application.auth.access.scope(curie)).generation
                )
                published_of(application).evolve.roll_back(application.auth.access.scope(curie), max(0, number - 1))

        def learn(part: Sequence[int]) -> None:
            for event in part:
                application.learning.learner.apply(target, [event])

        with ThreadPoolExecutor(3) as pool:
            for outcome in [
                pool.submit(steer),
                pool.submit(learn, events[::2]),
                pool.submit(learn, events[1::2]),
            ]:
                outcome.result()
        assert set(state.event_statuses(application, curie).values()) == {"applied"}
        assert len(rows(application, curie, "key_evidence")) == len(events)


VERDICT_LISTS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.lists(st.sampled_from(PASSAGES), min_size=1, max_size=3, unique=True),
        st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True),
    ),
    min_size=1,
    max_size=6,
)
"""Verdicts: a question, the passages it supports, the units that come along."""
QUESTIONS = (QUESTION, "What is radioactive?", "Where is the capital of Japan?")
UNITS = (
    RIVER,
    REWORDED,
    SPECIFIC,
    ELEMENT,
    Expansion("facet", "capital, Japan, Tokyo"),
    Expansion("facet", "Poland"),
)
FEW_EXAMPLES = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)


class TestAnyVerdicts:
    @FEW_EXAMPLES
    @given(told=VERDICT_LISTS, order=st.randoms(use_true_random=False), size=st.integers(1, 6))
    def test_order_and_batches_do_not_matter_evolving_again_changes_nothing_and_bounds_hold(
        self, application: Application, curie: str, told: list[Any], order: random.Random, size: int
    ) -> None:
        forget_keys(application, curie)
        with application.database.write() as writer:
            target = state.collection_id(application, curie)
            writer.execute("DELETE FROM judged_query WHERE collection_id = %(c)s", {"c": target})
        rules = KeyRules(0.7, 0.25, units=2, capacity=3)
        learn, evolve = services(application, rules=rules, most_waiting=10_000, patience=10_000)
        asked = [state.add_episode(application, curie, question, []) for question in QUESTIONS]
        events = [
            give(application, curie, asked[question], named, [UNITS[unit] for unit in units], wait=False).event.id
            for question, named, units in told
        ]
        learn.apply(target, events)
        evolve.evolve(application.auth.access.scope(curie))
        expected = list_learned(application, curie)
        assert evolve.evolve(application.auth.access.scope(curie)) is None
        assert list_learned(application, curie) == expected

        held = [row["passage_id"] for row in expected["expansion_memory"]]
        assert all(held.count(passage) <= rules.capacity for passage in set(held))
        bases = {row["id"]: vector(row, "embedding") for row in state.rows(application, curie, "passage")}
        for key in expected["passage_key"]:
            moved = np.linalg.norm(vector(key, "vector") - bases[key["passage_id"]])
            assert moved <= core.compute_displacement_bound(rules.strength) + HALF_PRECISION
            assert len(key["units"]) <= rules.units

        forget_keys(application, curie)
        order.shuffle(events)
        for at in range(0, len(events), size):
            learn.apply(target, events[at : at + size])
        evolve.evolve(application.auth.access.scope(curie))
        assert list_learned(application, curie) == expected
