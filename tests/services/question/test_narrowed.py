"""Queries that only some of a collection's passages may answer."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from engram.services.question import plan
from engram.services.question.query import Query
from tests.conftest import CURIE, Ingest, ingest_passages
from tests.support import state

QUESTIONS = ("Where was Marie Curie born?", "Which city lies on the Vistula?", "What is radioactive and why?")
ARMS: tuple[Any, ...] = (
    {},
    {"memory": "off"},
    pytest.param({"profile": "paper"}, marks=pytest.mark.wing("published")),
    {"strategy": "dense"},
    {"strategy": "lexical"},
    {"strategy": "hybrid"},
)


PASSAGES = [
    dict(passage) | {"metadata": {"kind": "a" if at < 3 else "b", "n": at}} for at, passage in enumerate(CURIE)
]
"""The linked passages, the first three of which are of one kind."""


@pytest.fixture(scope="module")
def kinds(application: Application) -> str:
    """A collection of ``PASSAGES`` that no test teaches."""
    name = f"kinds-{uuid4().hex}"
    assert ingest_passages(application, name, *PASSAGES)["created"] == len(PASSAGES)
    return name


def list_passages(application: Application, query: Query) -> list[str]:
    return [passage.passage_id for passage in application.answers.question.answer(query).passages]


@pytest.mark.parametrize("arm", ARMS, ids=str)
@pytest.mark.parametrize("question", QUESTIONS)
def test_conditions_hold_in_every_arm(
    application: Application, kinds: str, arm: dict[str, Any], question: str
) -> None:
    query = Query(text=question, scope=application.auth.access.scope(kinds), top_k=5, **arm)
    of_kind = {"kind": {"$eq": "a"}}
    first = set(list_passages(application, replace(query, filter=of_kind)))
    assert first <= {"curie", "warsaw", "vistula"}
    assert set(list_passages(application, replace(query, filter={"$not": of_kind}))) <= {"polonium", "tokyo"}
    late = of_kind | {"n": {"$gt": 0}}
    assert set(list_passages(application, replace(query, filter=late))) <= {"warsaw", "vistula"}
    assert set(list_passages(application, replace(query, filter={"$and": [late, {"n": 2}]}))) <= {"vistula"}
    if arm.get("strategy") != "lexical":
        assert first == {"curie", "warsaw", "vistula"}


@pytest.mark.parametrize("arm", ARMS, ids=str)
def test_only_some_passages_are_ranked(application: Application, kinds: str, arm: dict[str, Any]) -> None:
    ids = state.passages(application, kinds)
    query = Query(text=QUESTIONS[1], scope=application.auth.access.scope(kinds), top_k=5, **arm)
    some = list_passages(application, replace(query, among=sorted((ids["tokyo"], ids["warsaw"]))))
    assert set(some) <= {"tokyo", "warsaw"}
    assert some[0] == "warsaw"
    assert list_passages(application, replace(query, among=())) == []


@pytest.mark.parametrize(
    ("condition", "most", "chosen"),
    [
        ({"n": 1}, 5, {"warsaw"}),
        ({"n": {"$gt": 2}}, 5, {"polonium", "tokyo"}),
        ({"$not": {"n": 1}}, 4, {"curie", "vistula", "polonium", "tokyo"}),
        ({"$or": [{"n": 1}, {"kind": {"$eq": "b"}}]}, 3, {"warsaw", "polonium", "tokyo"}),
        ({"$and": [{"kind": "a"}, {"n": {"$lt": 1}}]}, 3, {"curie"}),
        ({"kind": "c"}, 3, set()),
        ({"kind": "a"}, 2, None),
        ({"kind": "a"}, 1, None),
        (None, 5, None),
    ],
)
def test_few_passages_that_a_filter_leaves_are_chosen_from_an_index(
    application: Application,
    kinds: str,
    monkeypatch: pytest.MonkeyPatch,
    condition: dict[str, Any] | None,
    most: int,
    chosen: set[str] | None,
) -> None:
    monkeypatch.setattr(plan, "MOST_EXACT", most)
    ids = state.passages(application, kinds)
    scope = application.auth.access.scope(kinds)
    indexed = replace(scope, collection=replace(scope.collection, indexed=["passage"]))
    planned = application.retrieval.retrieve.plan(Query(text=QUESTIONS[0], scope=indexed, filter=condition))
    assert planned.focus.among == (None if chosen is None else sorted(ids[name] for name in chosen))
    assert (
        len(list_passages(application, Query(text=QUESTIONS[0], scope=indexed, filter=condition))) > 0 or not chosen
    )


def test_recalled_sentences_respect_the_filter(application: Application, ingest: Ingest, collection: str) -> None:
    """A sentence that a verdict supported for this question is not found where its passage may not be."""
    ingest(*PASSAGES)
    scope = application.auth.access.scope(collection)
    query = Query(text=QUESTIONS[0], scope=scope, top_k=5)
    answer = application.answers.question.answer(query)
    helped = list(state.sentences(application, collection, "curie").values())
    state.judge(application, collection, answer.query_id, helped, wait=True)
    assert list_passages(application, query)[0] == "curie"
    others = {"n": {"$ne": 0}}
    assert "curie" not in list_passages(application, replace(query, filter=others))
    ids = state.passages(application, collection)
    assert list_passages(application, replace(query, among=[ids["tokyo"]])) == ["tokyo"]


def test_the_probabilities_of_an_answer(application: Application, kinds: str) -> None:
    scope = application.auth.access.scope(kinds)
    query = Query(text=QUESTIONS[0], scope=scope, top_k=2)
    passages = application.answers.question.answer(query).passages
    retrieve = application.retrieval.retrieve
    found = retrieve.find(retrieve.plan(query))
    probabilities = [found.ranking.estimate_probability(score) for _, score in found.ranking.ordered]
    assert [passage.probability for passage in passages] == probabilities[:2]
    assert sum(one for one in probabilities if one is not None) == pytest.approx(
        min(found.walk.recall.evidence_count, len(probabilities) / 2)
    )
    for strategy in ("dense", "lexical", "hybrid"):
        answer = application.answers.question.answer(replace(query, strategy=strategy))
        assert {passage.probability for passage in answer.passages} == {None}
