"""A walk as a value: stored and loaded again, stopped and resumed."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from engram.composition.container import Application
from engram.services.retrieval import hop_loop
from engram.services.retrieval.graph_cache import GraphCache
from engram.services.retrieval.graph_walk import MOST_RESUMED_ENTITIES, Frontier, Walk, load_walk, merge_walks
from engram.services.retrieval.query import Query
from engram.services.retrieval.query_plan import QueryPlan
from engram.storage.database import Reader
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


def resume(reader: Reader, plan: QueryPlan, walk: Walk, *more: Any, **named: Any) -> Walk:
    """The walk after further hops."""
    graph = GraphCache(0).open(reader, plan.focus, None)
    return hop_loop.advance(reader, plan, hop_loop.resume_walk(plan, walk, *more, **named), graph)


def store_and_load(walk: Walk) -> Walk:
    """The walk after a way through JSON."""
    return load_walk(json.loads(json.dumps(walk.to_json(), allow_nan=False)))


@pytest.mark.parametrize("profile", ["paper", "default"])
@pytest.mark.usefixtures("taught")
def test_a_stored_walk_is_loaded_as_it_was(application: Application, planned: Planned, profile: str) -> None:
    walk = through(application, planned(profile=profile))
    assert len(walk.hops) > 1
    assert bool(walk.recalled) == bool(walk.priors) == (profile == "default")
    again = store_and_load(walk)
    assert again.to_json() == walk.to_json()
    assert again.evidence == walk.evidence
    for one, other in zip(again.hops, walk.hops, strict=True):
        assert one.order.tolist() == other.order.tolist()
        assert one.candidates.sentence_ids.dtype == other.candidates.sentence_ids.dtype


@pytest.mark.parametrize("profile", ["paper", "default"])
@pytest.mark.usefixtures("taught")
def test_a_walk_stored_after_each_hop_and_resumed_is_one_that_ran_through(
    application: Application, planned: Planned, reader: Reader, profile: str
) -> None:
    whole = through(application, planned(profile=profile, max_hops=3))
    assert len(whole.hops) == 3
    walk = through(application, planned(profile=profile, max_hops=1))
    assert (len(walk.hops), walk.stop_reason) == (1, "max_hops")
    for most in (2, 3):
        walk = resume(reader, planned(profile=profile, max_hops=most), store_and_load(walk))
        assert len(walk.hops) == most
    assert walk.to_json() == whole.to_json()


def test_a_walk_that_may_go_no_further_stays_as_it_is(
    application: Application, planned: Planned, reader: Reader
) -> None:
    walk = through(application, planned(max_hops=2))
    again = resume(reader, planned(max_hops=2), walk)
    assert (again.hops, again.stop_reason) == (walk.hops, "max_hops")


def test_a_walk_goes_on_from_entities_that_it_is_given(
    application: Application, planned: Planned, reader: Reader
) -> None:
    first = through(application, planned(max_hops=1))
    other = replace(planned(max_hops=1).query, text="What is Tokyo the capital of?")
    entities = application.retrieval.retrieve.find(application.retrieval.retrieve.plan(other)).entities
    start = Frontier({entities[0].entity_id: 0.5}, {entities[0].entity_id: entities[0].name})
    assert FAR_SENTENCE not in through(application, planned(max_hops=2)).texts
    walk = resume(reader, planned(max_hops=2), first, start)
    assert walk.hops[1].start.activation[entities[0].entity_id] == 0.5
    assert FAR_SENTENCE in walk.texts
    assert walk.hops[0] is first.hops[0]


def test_a_walk_takes_in_sentences_that_nothing_leads_to(
    application: Application, planned: Planned, reader: Reader, curie: str
) -> None:
    far = sentences(application, curie, "tokyo")[FAR_SENTENCE]
    first = through(application, planned(max_hops=1))
    walk = resume(reader, planned(max_hops=2), first, sentences=[far])
    assert far in walk.hops[1].selected
    assert walk.hops[1].score(far) == 0.0
    assert walk.evidence[far].text == FAR_SENTENCE


def test_a_walk_that_ran_out_of_entities_goes_on_from_sentences_alone(
    application: Application, planned: Planned, reader: Reader, curie: str
) -> None:
    ended = through(application, planned(max_hops=10))
    assert ended.stop_reason == "no_entities"
    again = resume(reader, planned(max_hops=10), ended)
    assert (again.hops, again.stop_reason) == (ended.hops, "no_entities")
    far = sentences(application, curie, "tokyo")[FAR_SENTENCE]
    walk = resume(reader, planned(max_hops=10), ended, sentences=[far])
    assert walk.hops[len(ended.hops)].selected == [far]


@pytest.fixture
def rested(application: Application, planned: Planned) -> Walk:
    """Where a walk of one hop would have gone on, as a session keeps it."""
    walk = through(application, planned(max_hops=1))
    return store_and_load(hop_loop.cut_walk(planned(max_hops=1), walk))


def test_stored_walk_holds_ids_only(rested: Walk) -> None:
    assert rested.hops == ()
    assert rested.frontier is not None
    assert rested.frontier.activation
    assert set(rested.frontier.names.values()) == {""}
    stored = json.dumps(rested.to_json())
    assert not any(name in stored.casefold() for name in ("warsaw", "curie", "polonium"))


def test_another_question_goes_on_from_where_a_walk_would_have(
    application: Application, planned: Planned, rested: Walk
) -> None:
    assert rested.frontier is not None
    plain, resuming = (
        {"text": "What is Tokyo the capital of?", "max_hops": 1} | more for more in ({}, {"walk": rested})
    )
    query = planned(max_hops=1).query
    alone, both = (
        through(application, application.retrieval.retrieve.plan(replace(query, **asked)))
        for asked in (plain, resuming)
    )
    own, start = alone.hops[0].start, both.hops[0].start
    assert set(start.activation) == {*own.activation, *rested.frontier.activation}
    assert all(start.activation[entity] == own.activation[entity] for entity in own.activation)
    assert all(start.names.values())
    assert set(alone.hops[0].candidates.sentence_ids.tolist()) < set(both.hops[0].candidates.sentence_ids.tolist())


def test_entities_that_are_gone_are_not_gone_on_from(application: Application, planned: Planned) -> None:
    gone = Walk(Frontier({2**40: 1.0}, {2**40: ""}))
    plan = application.retrieval.retrieve.plan(replace(planned(max_hops=1).query, walk=gone))
    assert 2**40 not in through(application, plan).hops[0].start.activation


def test_several_walks_are_resumed_as_one() -> None:
    one = Walk(Frontier({1: 0.5, 2: 0.2}, {1: "a", 2: "b"}))
    other = Walk(Frontier({2: 0.9, **dict.fromkeys(range(10, 30), 0.1)}, dict.fromkeys((2, *range(10, 30)), "")))
    both = merge_walks([one, other]).frontier
    assert both is not None
    assert list(both.activation.items())[:3] == [(2, 0.9), (1, 0.5), (10, 0.1)]
    assert len(both.activation) == MOST_RESUMED_ENTITIES
