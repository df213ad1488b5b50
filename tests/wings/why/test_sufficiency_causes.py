"""The verdicts behind an answer's sufficiency, in its trace."""

import numpy as np
import pytest

from engram.composition.container import Application
from engram.core.ranking import sufficiency
from engram.services.question.trace import SufficiencyTrace
from tests.services.verdict.test_sufficiency_learning import (
    QUESTION,
    add_episode,
    list_first_sentences,
    query,
)
from tests.support import state


def trace(application: Application, name: str, text: str) -> SufficiencyTrace:
    traced = query(application, name, text=text, include=frozenset({"trace"})).trace
    assert traced is not None
    assert traced.sufficiency is not None
    return traced.sufficiency


def test_the_only_verdict_moved_it_from_what_the_prior_says(application: Application, curie: str) -> None:
    supporting = list_first_sentences(application, curie, "curie", "warsaw", "vistula")
    event = state.judge(application, curie, query(application, curie).query_id, supporting, wait=True).event.id
    answer = query(application, curie, include=frozenset({"trace"}))
    assert answer.trace is not None
    told = answer.trace.sufficiency
    assert told is not None
    (moved,) = told.influences
    assert not told.influences_cut
    assert (moved.event_id, moved.question) == (event, QUESTION)
    values = np.array([told.features[name].value for name in sufficiency.ANSWER_FEATURES])
    unmoved = sufficiency.probability(values, state.prior_of(application, curie).sufficiency.mean)
    assert moved.probability == pytest.approx(told.model - unmoved, abs=1e-12)
    kept = application.answers.episodes.read(application.auth.access.scope(curie), answer.query_id)
    assert kept.trace.sufficiency == told


def test_each_verdict_is_listed_with_its_effect(application: Application, curie: str) -> None:
    supports = (("curie",), ("warsaw",), ("tokyo",))
    events = [
        state.judge(
            application,
            curie,
            add_episode(application, curie),
            list_first_sentences(application, curie, *supported),
            wait=True,
        ).event.id
        for supported in supports
    ]
    told = trace(application, curie, "What is polonium?")
    moved = {row.event_id: row.probability for row in told.influences}
    assert set(moved) == set(events)
    application.learning.revocation.revoke(application.auth.access.scope(curie), events[1])
    without = trace(application, curie, "What is polonium?")
    values = np.array([told.features[name].value for name in sufficiency.ANSWER_FEATURES])
    weights = np.array([without.features[name].weight for name in sufficiency.ANSWER_FEATURES])
    left = sufficiency.probability(values, weights)
    assert moved[events[1]] == pytest.approx(told.model - left, abs=1e-9)
