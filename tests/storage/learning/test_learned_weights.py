"""Sums and terms of models' weights in their tables."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sqlalchemy.exc import DBAPIError

from engram.composition.container import Application
from engram.core.ranking.weight_beliefs import PriorIdentity, WeightEvidence
from engram.storage.learning import learned_weights
from engram.storage.learning.learned_weights import WeightTerm
from tests.support import state
from tests.support.threads import ThreadPoolExecutor

SIZE = 3
FIRST_PRIOR = PriorIdentity("sufficiency", "one")


def term(event: int, seed: int) -> WeightTerm:
    draw = np.random.default_rng(seed)
    root = draw.normal(size=(SIZE, SIZE))
    evidence = WeightEvidence(draw.normal(size=SIZE), root @ root.T)
    return WeightTerm(event, "judge", "2026-05-01", None, evidence, noise=0.5, surprise=0.25)


@pytest.fixture
def events(application: Application, curie: str) -> list[int]:
    """Events that wait, so that nothing was learned from them yet."""
    query_id = state.add_episode(application, curie, "?", [])
    return [state.judge(application, curie, query_id).event.id for _ in range(4)]


def add(application: Application, name: str, *terms: WeightTerm, believed: PriorIdentity = FIRST_PRIOR) -> None:
    target = state.collection_id(application, name)
    with application.database.write() as writer:
        learned_weights.add(writer, target, believed, terms)


def test_learned_weights_are_absent_before_the_first_term(application: Application, curie: str) -> None:
    assert state.load_weights(application, curie, "one") is None


def test_terms_sum_exactly_and_are_stored(application: Application, curie: str, events: list[int]) -> None:
    terms = [term(event, seed) for seed, event in enumerate(events)]
    add(application, curie, *terms[:2])
    add(application, curie, *terms[2:])

    learned = state.load_weights(application, curie, "one")
    assert learned is not None
    assert learned.events == 4
    total = WeightEvidence(np.zeros(SIZE), np.zeros((SIZE, SIZE)))
    for each in terms:
        total += each.evidence
    assert_array_equal(learned.evidence.information, total.information)
    assert_array_equal(learned.evidence.precision, total.precision)
    kept = {row["event_id"]: row for row in state.rows(application, curie, "weight_audit")}
    for each in terms:
        row = kept[each.event_id]
        assert row["information"] == each.evidence.information.tolist()
        assert row["precision"] == each.evidence.precision.ravel().tolist()
        assert (row["prior"], row["observation_noise"], row["surprise"]) == ("one", 0.5, 0.25)


def test_each_prior_has_its_own_term_sums(application: Application, curie: str, events: list[int]) -> None:
    add(application, curie, term(events[0], 0))
    add(application, curie, term(events[1], 1), believed=PriorIdentity("sufficiency", "other"))
    add(application, curie, term(events[0], 2), believed=PriorIdentity("reranker", "one"))

    beliefs: list[PriorIdentity] = []
    for model, name, seed in (("sufficiency", "one", 0), ("sufficiency", "other", 1), ("reranker", "one", 2)):
        beliefs.append(PriorIdentity(model, name))  # type: ignore[arg-type]
        learned = state.load_weights(application, curie, name, model)  # type: ignore[arg-type]
        assert learned is not None
        assert learned.events == 1
        assert_array_equal(learned.evidence.information, term(0, seed).evidence.information)
    with application.database.read() as reader:
        target = state.collection_id(application, curie)
        found = learned_weights.find_all(reader, target, beliefs[:1] + beliefs[2:])
        assert set(found) == {beliefs[0], beliefs[2]}
        for believed, learned in found.items():
            assert_array_equal(
                learned.evidence.precision,
                learned_weights.find(reader, target, believed).evidence.precision,  # type: ignore[union-attr]
            )


def test_an_event_has_one_term_of_each_model(application: Application, curie: str, events: list[int]) -> None:
    add(application, curie, term(events[0], 0))
    before = state.snapshot(application, curie, state.WEIGHTS)
    with pytest.raises(DBAPIError, match="weight_audit_pkey"):
        add(application, curie, term(events[0], 1))

    assert state.snapshot(application, curie, state.WEIGHTS) == before


def test_failed_transaction_stores_no_terms(application: Application, curie: str, events: list[int]) -> None:
    target = state.collection_id(application, curie)

    def add_and_fail() -> None:
        with application.database.write() as writer:
            learned_weights.add(writer, target, FIRST_PRIOR, [term(events[0], 0)])
            raise KeyError("dead")

    with pytest.raises(KeyError):
        add_and_fail()
    assert state.snapshot(application, curie, state.WEIGHTS) == {table: [] for table in state.WEIGHTS}


@pytest.mark.parametrize("known", [False, True])
def test_a_second_writer_waits_for_the_first(
    application: Application, curie: str, events: list[int], known: bool
) -> None:
    """Whether or not there is a row to wait for."""
    target = state.collection_id(application, curie)
    if known:
        add(application, curie, term(events[2], 2))
    with ThreadPoolExecutor(1) as pool:
        with application.database.write() as writer:
            learned_weights.add(writer, target, FIRST_PRIOR, [term(events[0], 0)])
            second = pool.submit(add, application, curie, term(events[1], 1))
            while not state.count_waiting_locks(application.database):
                assert not second.done()
        second.result()

    learned = state.load_weights(application, curie, "one")
    assert learned is not None
    seeds = (2, 0, 1) if known else (0, 1)
    assert_allclose(learned.evidence.information, sum(term(0, seed).evidence.information for seed in seeds))
    assert learned.events == len(seeds)


def test_an_event_takes_its_term_along(application: Application, curie: str, events: list[int]) -> None:
    add(application, curie, *(term(event, seed) for seed, event in enumerate(events)))
    with application.database.write() as writer:
        writer.execute("DELETE FROM feedback_event WHERE id = %(event)s", {"event": events[0]})

    assert [row["event_id"] for row in state.rows(application, curie, "weight_audit")] == events[1:]
