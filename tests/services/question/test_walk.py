"""Walks: how far they go, and what their first hop reaches besides."""

from collections.abc import Callable
from typing import Any

import pytest

from engram.composition.container import Application
from engram.services.question.plan import QueryPlan
from engram.services.question.query import Query, SessionPart
from engram.services.question.walk import Walk
from tests.support.state import add_episode, judge, sentences

CHAIN = "Into which sea flows the river of Marie Curie's birthplace?"
FAR_SENTENCE = "Tokyo lies on Tokyo Bay."

Planned = Callable[..., QueryPlan]


@pytest.fixture
def planned(application: Application, curie: str) -> Planned:
    """Plans of a question that no evidence but three hops' ends."""

    def plan(**more: Any) -> QueryPlan:
        return application.retrieval.retrieve.plan(
            Query(
                text=CHAIN,
                scope=application.auth.access.scope(curie),
                **{"stop_rule": "none", "time_constraint": "in 1867"} | more,
            )
        )

    return plan


@pytest.fixture
def taught(application: Application, curie: str) -> str:
    """A verdict on the very question, in favour of what its first hop does not reach."""
    ids = sentences(application, curie, "tokyo") | sentences(application, curie, "vistula")
    query_id = add_episode(application, curie, CHAIN, list(ids.values()))
    judge(application, curie, query_id, [ids[FAR_SENTENCE]], wait=True)
    return curie


def through(application: Application, plan: QueryPlan) -> Walk:
    return application.retrieval.retrieve.find(plan).walk


@pytest.mark.parametrize("profile", ["paper", "default"])
@pytest.mark.usefixtures("taught")
def test_a_longer_walk_begins_as_a_shorter_one(application: Application, planned: Planned, profile: str) -> None:
    short, whole = (through(application, planned(profile=profile, max_hops=most)) for most in (1, 3))
    assert (len(short.hops), short.stop_reason) == (1, "max_hops")
    assert len(whole.hops) == 3
    assert bool(whole.recalled) == bool(whole.recall_probabilities) == (profile == "default")
    assert (short.hops[0].start, short.hops[0].selected) == (whole.hops[0].start, whole.hops[0].selected)


def test_a_walk_ends_where_no_entity_leads_on(application: Application, planned: Planned) -> None:
    assert through(application, planned(max_hops=10)).stop_reason == "no_entities"


def test_the_first_hop_takes_in_a_session_s_pool(application: Application, planned: Planned, curie: str) -> None:
    far = sentences(application, curie, "tokyo")[FAR_SENTENCE]
    query = planned(max_hops=2).query
    alone, pooled = (
        through(application, application.retrieval.retrieve.plan(one))
        for one in (query, query.with_part(SessionPart(pool=(far,))))
    )
    assert far not in alone.evidence
    assert far in pooled.hops[0].selected
