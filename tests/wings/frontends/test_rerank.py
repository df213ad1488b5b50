"""Reranking, asked by Cohere's own clients and in the words of Jina's."""

import math
from typing import Any
from uuid import UUID

import cohere
import pytest
from cohere.errors import NotFoundError, UnprocessableEntityError

from engram.composition.container import Application
from engram.runtime.api_process import create_app
from tests.api.conftest import Counts, Variant
from tests.api.operations import RERANK, assert_problem
from tests.conftest import CURIE
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"
TEXTS = [passage["text"] for passage in CURIE]
STRANGE = ["Marie Curie grew up in Poland.", "The kettle is on the stove."]


@pytest.fixture
def first(service: str) -> cohere.Client:
    """A client of version 1 of Cohere's API."""
    return cohere.Client(api_key="none", base_url=service)


@pytest.fixture
def second(service: str) -> cohere.ClientV2:
    """A client of version 2 of Cohere's API."""
    return cohere.ClientV2(api_key="none", base_url=service)


def test_texts_that_the_collection_knows_are_ranked_as_it_answers(
    first: cohere.Client, http: TestClient, curie: str
) -> None:
    asked = http.post("/query", json={"query": QUESTION, "collection": curie, "top_k": 5}).json()
    ranked = first.rerank(model=curie, query=QUESTION, documents=TEXTS[::-1])
    by_id = {passage["id"]: passage["text"] for passage in CURIE}
    assert [TEXTS[::-1][one.index] for one in ranked.results] == [
        by_id[passage["passage_id"]] for passage in asked["passages"]
    ]
    scores = [one.relevance_score for one in ranked.results]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)


def test_the_id_is_that_of_a_query(second: cohere.ClientV2, application: Application, curie: str) -> None:
    ranked = second.rerank(model=curie, query=QUESTION, documents=[*STRANGE, *TEXTS[:2]])
    assert ranked.id is not None
    kept = application.answers.episodes.read(application.auth.access.scope(curie), UUID(ranked.id))
    assert kept.answer["query"] == QUESTION
    assert {passage["passage_id"] for passage in kept.answer["passages"]} == {"curie", "warsaw"}
    assert ranked.meta is not None
    assert ranked.meta.api_version is not None
    assert ranked.meta.api_version.version == "2"


def test_verdict_raises_a_reranked_text(second: cohere.ClientV2, http: TestClient, curie: str) -> None:
    question = "Which river did she play at?"

    def places() -> dict[str | None, int]:
        ranked = second.rerank(model=curie, query=question, documents=TEXTS)
        return {one.passage_id: place for place, one in enumerate(ranked.results)}  # type: ignore[attr-defined]

    before = places()
    last = max(before, key=lambda name: before[name])
    ranked = second.rerank(model=curie, query=question, documents=TEXTS)
    sentence = http.get(f"/passages/{last}", params={"collection": curie}).json()["sentences"][0]["sentence_id"]
    for judge in ("ada", "bob", "eve"):
        verdict = {
            "query_id": ranked.id, "collection": curie, "supporting": [sentence], "judge": judge, "wait": True,
        }  # fmt: skip
        told = http.post("/feedback", json=verdict, headers={"idempotency-key": f"{ranked.id}-{judge}"})
        assert told.status_code in {200, 202}, told.text
    assert places()[last] < before[last]


def test_other_texts_go_by_the_encoder(first: cohere.Client, application: Application, curie: str) -> None:
    documents = [*STRANGE, *TEXTS]
    ranked = first.rerank(model=curie, query=QUESTION, documents=documents)
    scores = {one.index: one.relevance_score for one in ranked.results}
    collection = application.auth.access.scope(curie).collection
    question, *vectors = application.models.encoder.embed(collection, [QUESTION, *documents])
    cosines = [max(float(vector @ question), 0.0) for vector in vectors]
    for place in range(len(STRANGE)):
        assert math.isclose(scores[place], cosines[place], abs_tol=1e-5)
    known = range(len(STRANGE), len(documents))
    shared = zip(sorted(scores[place] for place in known), sorted(cosines[place] for place in known), strict=True)
    assert all(math.isclose(one, other, abs_tol=1e-5) for one, other in shared)


def test_texts_are_the_same_apart_from_white_space_around_them(second: cohere.ClientV2, curie: str) -> None:
    ranked = second.rerank(model=curie, query=QUESTION, documents=[f"\n {TEXTS[0]}\t", TEXTS[0], TEXTS[0].lower()])
    names = {one.index: one.passage_id for one in ranked.results}  # type: ignore[attr-defined]
    assert names == {0: "curie", 1: "curie", 2: None}


def test_texts_wanted_and_texts_back(first: cohere.Client, curie: str) -> None:
    ranked = first.rerank(model=curie, query=QUESTION, documents=TEXTS, top_n=2, return_documents=True)
    assert [one.document.text for one in ranked.results if one.document] == [
        TEXTS[one.index] for one in ranked.results
    ]
    assert len(ranked.results) == 2
    assert first.rerank(model=curie, query=QUESTION, documents=TEXTS, top_n=99).results[0].document is None


def test_in_the_words_of_jina(http: TestClient, curie: str) -> None:
    answer = http.post(
        "/v1/rerank",
        json={
            "model": curie,
            "query": QUESTION,
            "documents": [{"text": TEXTS[0]}, {"text": STRANGE[1], "title": "ignored"}],
            "top_n": 2,
            "return_documents": True,
            "truncation": True,
        },
    ).json()
    assert (answer["object"], answer["model"]) == ("list", curie)
    assert [one["index"] for one in answer["results"]] == [0, 1]
    assert answer["results"][0]["document"] == {"text": TEXTS[0]}


def test_an_empty_text_is_a_text(http: TestClient, curie: str) -> None:
    body = {"model": curie, "query": QUESTION, "documents": ["", " ", TEXTS[0]]}
    answer = http.post("/v1/rerank", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["results"][0]["index"] == 2


def test_texts_that_take_too_long_leave_no_episode(variant: Variant, curie: str, counts: Counts) -> None:
    hasty = TestClient(create_app(variant(query_timeout_seconds=0.001)), raise_server_exceptions=False)
    before = counts()
    answer = hasty.post("/v1/rerank", json={"model": curie, "query": QUESTION, "documents": TEXTS})
    assert_problem(answer)
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:engram:problem:deadline")
    assert answer.json()["message"] == answer.json()["detail"]
    assert counts() == before


def test_a_collection_that_knows_none_of_the_texts(second: cohere.ClientV2, curie: str) -> None:
    ranked = second.rerank(model=curie, query=QUESTION, documents=STRANGE)
    assert [one.index for one in ranked.results] == [0, 1]
    assert UUID(ranked.id)


@pytest.mark.parametrize("path", RERANK)
@pytest.mark.parametrize(
    "wrong",
    [
        {"query": ""},
        {"documents": []},
        {"documents": "text"},
        {"documents": [5]},
        {"documents": [{"image": "x"}]},
        {"documents": ["\x00"]},
        {"documents": ["x"] * 1_001},
        {"documents": ["x" * 100_001]},
        {"top_n": 0},
        {"top_n": "2"},
        {"model": "not a name"},
        {"return_documents": "yes"},
    ],
    ids=lambda wrong: str(wrong)[:40],
)
def test_bad_requests_get_coheres_error(
    http: TestClient, curie: str, counts: Counts, path: str, wrong: dict[str, Any]
) -> None:
    before = counts()
    answer = http.post(path, json={"model": curie, "query": QUESTION, "documents": TEXTS} | wrong)
    assert_problem(answer)
    assert answer.status_code == 422
    assert answer.json()["message"] == answer.json()["detail"]
    assert counts() == before


@pytest.mark.parametrize(
    ("document", "location"),
    [("a\0b", ["text"]), ({"text": "a\0b"}, ["object", "text"]), ({}, ["object", "text"]), (7, ["object"])],
)
def test_a_refused_text_is_named_by_its_own_error_alone(
    http: TestClient, curie: str, document: object, location: list[str]
) -> None:
    body = {"model": curie, "query": QUESTION, "documents": ["Warsaw", document]}
    answer = http.post(RERANK[0], json=body)
    assert answer.status_code == 422
    assert [error["loc"] for error in answer.json()["errors"]] == [["body", "documents", "1", *location]]


def test_coheres_clients_raise_their_own_errors(
    first: cohere.Client, second: cohere.ClientV2, counts: Counts
) -> None:
    before = counts()
    for client in (first, second):
        with pytest.raises(NotFoundError) as missing:
            client.rerank(model="nowhere", query=QUESTION, documents=TEXTS)
        assert "nowhere" in missing.value.body["message"]
        with pytest.raises(UnprocessableEntityError) as refused:
            client.rerank(model="nowhere", query=QUESTION, documents=[])
        assert "documents" in refused.value.body["message"]
    assert counts() == before
