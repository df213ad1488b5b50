"""A walk that is stopped and goes on."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from engram.composition.container import Application
from engram.core.ranking.question_memory import net_support
from engram.core.ranking.same_need import SameNeed
from engram.services.question.caches import GraphCache, find_nothing
from engram.services.question.plan import QueryPlan, Search
from engram.services.question.query import Frontier, Query, SessionPart
from engram.services.question.walk import (
    Walk,
    advance,
    find_rest,
    resume_walk,
    summarise_recall,
    summarise_rejections,
)
from engram.storage.database import Reader
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
def reader(application: Application) -> Iterator[Reader]:
    """A reader of the test's own."""
    with application.database.read() as opened:
        yield opened


@pytest.fixture
def taught(application: Application, curie: str) -> str:
    """A verdict on the very question, in favour of what its first hop does not reach."""
    ids = sentences(application, curie, "tokyo") | sentences(application, curie, "vistula")
    query_id = add_episode(application, curie, CHAIN, list(ids.values()))
    judge(application, curie, query_id, [ids[FAR_SENTENCE]], wait=True)
    return curie


def through(application: Application, plan: QueryPlan) -> Walk:
    return application.retrieval.retrieve.find(plan).walk


def resume(application: Application, reader: Reader, plan: QueryPlan, walk: Walk, *more: Any, **named: Any) -> Walk:
    """The walk after further hops."""
    search = Search(
        reader,
        plan,
        application.models.priors.select_kind(plan.collection.corpus_kind),
        find_nothing,
        GraphCache(0).open(reader, plan.focus, None),
    )
    return advance(search, resume_walk(plan, walk, *more, **named))


@pytest.mark.parametrize("profile", [pytest.param("paper", marks=pytest.mark.wing("published")), "default"])
@pytest.mark.usefixtures("taught")
def test_a_walk_resumed_after_each_hop_is_one_that_ran_through(
    application: Application, planned: Planned, reader: Reader, profile: str
) -> None:
    whole = through(application, planned(profile=profile, max_hops=3))
    assert len(whole.hops) == 3
    assert bool(whole.recalled) == bool(whole.recall_probabilities) == (profile == "default")
    walk = through(application, planned(profile=profile, max_hops=1))
    assert (len(walk.hops), walk.stop_reason) == (1, "max_hops")
    for most in (2, 3):
        walk = resume(application, reader, planned(profile=profile, max_hops=most), walk)
        assert len(walk.hops) == most
    assert [(hop.start, hop.selected, hop.scores.tolist()) for hop in walk.hops] == [
        (hop.start, hop.selected, hop.scores.tolist()) for hop in whole.hops
    ]
    assert (walk.texts, walk.stop_reason) == (whole.texts, whole.stop_reason)


def test_a_walk_that_may_go_no_further_stays_as_it_is(
    application: Application, planned: Planned, reader: Reader
) -> None:
    walk = through(application, planned(max_hops=2))
    again = resume(application, reader, planned(max_hops=2), walk)
    assert (again.hops, again.stop_reason) == (walk.hops, "max_hops")


def test_a_walk_goes_on_from_entities_that_it_is_given(
    application: Application, planned: Planned, reader: Reader
) -> None:
    first = through(application, planned(max_hops=1))
    other = replace(planned(max_hops=1).query, text="What is Tokyo the capital of?")
    entities = application.retrieval.retrieve.find(application.retrieval.retrieve.plan(other)).entities
    start = Frontier({entities[0].entity_id: 0.5}, {entities[0].entity_id: entities[0].name})
    assert FAR_SENTENCE not in through(application, planned(max_hops=2)).texts
    walk = resume(application, reader, planned(max_hops=2), first, start)
    assert walk.hops[1].start.activation[entities[0].entity_id] == 0.5
    assert FAR_SENTENCE in walk.texts
    assert walk.hops[0] is first.hops[0]


def test_a_walk_takes_in_sentences_that_nothing_leads_to(
    application: Application, planned: Planned, reader: Reader, curie: str
) -> None:
    far = sentences(application, curie, "tokyo")[FAR_SENTENCE]
    first = through(application, planned(max_hops=1))
    walk = resume(application, reader, planned(max_hops=2), first, sentences=[far])
    assert far in walk.hops[1].selected
    assert walk.hops[1].score(far) == 0.0
    assert walk.evidence[far].text == FAR_SENTENCE


def test_a_walk_that_ran_out_of_entities_goes_on_from_sentences_alone(
    application: Application, planned: Planned, reader: Reader, curie: str
) -> None:
    ended = through(application, planned(max_hops=10))
    assert ended.stop_reason == "no_entities"
    again = resume(application, reader, planned(max_hops=10), ended)
    assert (again.hops, again.stop_reason) == (ended.hops, "no_entities")
    far = sentences(application, curie, "tokyo")[FAR_SENTENCE]
    walk = resume(application, reader, planned(max_hops=10), ended, sentences=[far])
    assert walk.hops[len(ended.hops)].selected == [far]


@pytest.fixture
def rest(application: Application, planned: Planned) -> Frontier:
    """Where a walk of one hop would have gone on."""
    return find_rest(planned(max_hops=1), through(application, planned(max_hops=1)))


def test_where_a_walk_would_have_gone_on_holds_ids_only(rest: Frontier) -> None:
    assert rest.activation
    assert set(rest.names.values()) == {""}


def test_another_question_goes_on_from_where_a_walk_would_have(
    application: Application, planned: Planned, rest: Frontier
) -> None:
    plain = replace(planned(max_hops=1).query, text="What is Tokyo the capital of?")
    alone, both = (
        through(application, application.retrieval.retrieve.plan(query))
        for query in (plain, plain.with_part(SessionPart(frontier=rest)))
    )
    own, start = alone.hops[0].start, both.hops[0].start
    assert set(start.activation) == {*own.activation, *rest.activation}
    assert all(start.activation[entity] == own.activation[entity] for entity in own.activation)
    assert all(start.names.values())
    assert set(alone.hops[0].candidates.sentence_ids.tolist()) < set(both.hops[0].candidates.sentence_ids.tolist())


def test_entities_that_are_gone_are_not_gone_on_from(application: Application, planned: Planned) -> None:
    gone = SessionPart(frontier=Frontier({2**40: 1.0}, {2**40: ""}))
    plan = application.retrieval.retrieve.plan(planned(max_hops=1).query.with_part(gone))
    assert 2**40 not in through(application, plan).hops[0].start.activation


def build_past(sentence: int, passage: int, *, need: float, support: float = 0.9) -> PastSupport:
    """A sentence that a complete verdict on past question 1 named."""
    return PastSupport(1, "", 1.0, sentence, passage, support, 0.1, True, same_need=SameNeed(need, 0.0, 0.0))


def test_complete_evidence_vouches_with_its_least_probable_passage() -> None:
    named = [build_past(10, 100, need=0.9), build_past(11, 101, need=0.6)]
    assert summarise_recall(named)[1] == pytest.approx(0.6 * net_support(0.9, 0.1))
    assert summarise_recall([replace(past, complete=False) for past in named])[1] == 0.0


def test_a_passage_with_a_supported_sentence_is_not_rejected() -> None:
    past = [build_past(10, 100, need=0.9), build_past(11, 100, need=0.9, support=0.0)]
    assert summarise_rejections(past) == {}
    assert summarise_rejections(past[1:]).keys() == {100}
