"""Walks: how far they go, and what their first hop reaches besides."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from engram.composition.container import Application
from engram.core.ranking.question_memory import net_support
from engram.core.ranking.same_need import SameNeed
from engram.services.question.plan import QueryPlan
from engram.services.question.query import Query, SessionPart
from engram.services.question.recall import summarise_recall, summarise_rejections
from engram.services.question.walk import Walk
from engram.storage.learning.question_supports import PastSupport
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


@pytest.mark.parametrize("profile", [pytest.param("paper", marks=pytest.mark.wing("published")), "default"])
@pytest.mark.usefixtures("taught")
def test_a_longer_walk_begins_as_a_shorter_one(application: Application, planned: Planned, profile: str) -> None:
    short, whole = (through(application, planned(profile=profile, max_hops=most)) for most in (1, 3))
    assert (len(short.hops), short.stop_reason) == (1, "max_hops")
    assert len(whole.hops) == 3
    assert bool(whole.recall.supports) == bool(whole.recall.probabilities) == (profile == "default")
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


def build_past(
    sentence: int, passage: int, *, need: float, support: float = 0.9, accepted: float = 0.0, question: int = 1
) -> PastSupport:
    """A sentence that a complete verdict on a past question named; ``accepted``: beyond its support."""
    return PastSupport(
        question_id=question,
        question="",
        similarity=1.0,
        sentence_id=sentence,
        passage_id=passage,
        support=support,
        perplexity=0.1,
        acceptance=support + accepted,
        complete=True,
        same_need=SameNeed(need, 0.0, 0.0),
    )


def test_complete_evidence_vouches_with_its_least_probable_passage() -> None:
    named = [build_past(10, 100, need=0.9), build_past(11, 101, need=0.6)]
    assert summarise_recall(named)[1] == pytest.approx(0.6 * net_support(0.9, 0.1))
    assert summarise_recall([replace(past, complete=False) for past in named])[1] == 0.0


def test_a_passage_with_a_supported_sentence_is_not_rejected() -> None:
    past = [build_past(10, 100, need=0.9), build_past(11, 100, need=0.9, support=0.0)]
    assert summarise_rejections(past) == {}
    assert summarise_rejections(past[1:]).keys() == {100}


@pytest.mark.parametrize(
    ("need", "accepted", "rejected"),
    [(0.9, 0.9, False), (0.9, 0.4, True), (0.3, 0.9, True)],
    ids=["as surely", "less surely", "another need"],
)
def test_a_passage_that_is_accepted_for_another_question_is_not_rejected(
    need: float, accepted: float, rejected: bool
) -> None:
    past = [
        build_past(10, 100, need=0.9, support=0.0),
        build_past(10, 100, need=need, support=0.1, accepted=accepted - 0.1, question=2),
    ]
    assert bool(summarise_rejections(past)) is rejected
    assert not summarise_recall(past)[0]
