"""OpenAI's vector stores, asked by OpenAI's own client."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import openai
import pytest

from engram.composition.container import Application
from tests.api.conftest import Counts
from tests.api.operations import assert_problem
from tests.conftest import Ingest
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"
MOONS = (
    {
        "id": "titan",
        "title": "Titan",
        "text": "Titan has lakes of methane.",
        "metadata": {"year": 1655, "far": True},
    },
    {
        "id": "io",
        "title": "Io",
        "text": "Io has volcanoes.",
        "metadata": {"year": 1610, "tags": ["hot"], "note": None},
    },
    {"id": "moon", "text": "The Moon has craters.", "metadata": {"kind": "near", "share": 0.5}},
)


@pytest.fixture
def client(service: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{service}/v1", api_key="none", max_retries=0) as found:
        yield found


def ids(client: openai.OpenAI, collection: str, **more: Any) -> set[str]:
    found = client.vector_stores.search(collection, query="Which moon?", **more)
    return {one.file_id for one in found.data}


def test_a_search(client: openai.OpenAI, application: Application, curie: str) -> None:
    page = client.vector_stores.search(curie, query=QUESTION, max_num_results=2)
    assert page.object == "vector_store.search_results.page"
    assert next(one.file_id for one in page) == "curie"
    assert len(page.data) == 2
    best = page.data[0]
    assert (best.filename, best.content[0].type) == ("Marie Curie", "text")
    assert best.content[0].text.startswith("Marie Curie was born in Warsaw")
    assert 1 >= best.score >= page.data[1].score >= 0
    assert page.model_extra is not None
    assert page.model_extra["search_query"] == [QUESTION]
    assert not page.has_next_page()
    kept = application.answers.episodes.read(
        application.auth.access.scope(curie), UUID(page.model_extra["query_id"])
    )
    assert [passage["passage_id"] for passage in kept.answer["passages"]] == [one.file_id for one in page.data]


def test_several_questions_are_one(client: openai.OpenAI, curie: str) -> None:
    page = client.vector_stores.search(curie, query=["Where was she born?", "Marie Curie"], rewrite_query=True)
    assert page.model_extra is not None
    assert page.model_extra["search_query"] == ["Where was she born?\nMarie Curie"]
    assert page.data[0].file_id == "curie"


def test_metadata_are_attributes(client: openai.OpenAI, ingest: Ingest, collection: str) -> None:
    ingest(*MOONS)
    found = {one.file_id: one for one in client.vector_stores.search(collection, query="Which moon?").data}
    assert found["titan"].attributes == {"year": 1655, "far": True, "document": "Titan", "language": "en"}
    assert found["io"].attributes == {"year": 1610, "tags": '["hot"]', "document": "Io", "language": "en"}
    assert found["moon"].filename == "moon"


@pytest.mark.parametrize(
    ("kind", "key", "value", "expected"),
    [
        ("eq", "year", 1655, {"titan"}),
        ("eq", "far", True, {"titan"}),
        ("eq", "tags", "hot", {"io"}),
        ("ne", "year", 1655, {"io", "moon"}),
        ("gt", "year", 1610, {"titan"}),
        ("gte", "year", 1610, {"titan", "io"}),
        ("lt", "share", 0.6, {"moon"}),
        ("lte", "kind", "near", {"moon"}),
        ("in", "year", [1610, 1655], {"titan", "io"}),
        ("nin", "year", [1610], {"titan", "moon"}),
    ],
)
def test_comparison_filters(
    client: openai.OpenAI, ingest: Ingest, collection: str, kind: Any, key: str, value: Any, expected: set[str]
) -> None:
    ingest(*MOONS)
    assert ids(client, collection, filters={"type": kind, "key": key, "value": value}) == expected


def test_compound_filters(client: openai.OpenAI, ingest: Ingest, collection: str) -> None:
    ingest(*MOONS)
    early: Any = {"type": "lt", "key": "year", "value": 1650}
    near: Any = {"type": "eq", "key": "kind", "value": "near"}
    far: Any = {"type": "eq", "key": "far", "value": True}
    assert ids(client, collection, filters={"type": "or", "filters": [early, near]}) == {"io", "moon"}
    assert ids(client, collection, filters={"type": "and", "filters": [early, near]}) == set()
    nested: Any = {"type": "or", "filters": [far, {"type": "and", "filters": [early, early]}]}
    assert ids(client, collection, filters=nested) == {"titan", "io"}


def test_ranking_options(client: openai.OpenAI, application: Application, curie: str) -> None:
    whole = client.vector_stores.search(curie, query=QUESTION).data
    cut = client.vector_stores.search(curie, query=QUESTION, ranking_options={"score_threshold": whole[1].score})
    assert [one.file_id for one in cut.data] == [one.file_id for one in whole[:2]]
    plain = client.vector_stores.search(curie, query=QUESTION, ranking_options={"ranker": "none"})
    assert plain.model_extra is not None
    kept = application.answers.episodes.read(
        application.auth.access.scope(curie), UUID(plain.model_extra["query_id"])
    ).answer
    assert (kept["strategy"], kept["memory"]) == ("dense", "off")
    assert {one.file_id for one in plain.data} == {one.file_id for one in whole}


def test_stores(client: openai.OpenAI, curie: str) -> None:
    store = client.vector_stores.retrieve(curie)
    assert (store.id, store.name, store.object, store.status) == (curie, curie, "vector_store", "completed")
    assert store.file_counts.completed == store.file_counts.total == 5
    assert store.created_at > 1_700_000_000
    assert curie in {one.id for one in client.vector_stores.list(limit=100)}


def test_pages_of_stores(client: openai.OpenAI, ingest: Ingest, collection: str) -> None:
    names = [f"{collection}-{letter}" for letter in "abcd"]
    for name in names:
        ingest({"id": "x", "text": "One."}, into=name)
    names = [name for name in _list_all(client) if name.startswith(collection)]
    assert names == sorted(names)
    first = client.vector_stores.list(limit=2, after=names[0], order="asc")
    assert [one.id for one in first.data] == names[1:3]
    assert first.has_more is True
    assert [one.id for one in client.vector_stores.list(limit=2, after=names[3], order="desc").data] == names[
        2:0:-1
    ]
    assert [one.id for one in client.vector_stores.list(limit=2, before=names[3], order="asc").data] == names[1:3]


def _list_all(client: openai.OpenAI) -> list[str]:
    return [one.id for one in client.vector_stores.list(limit=2, order="asc")]


@pytest.mark.parametrize(
    "wrong",
    [
        {"query": ""},
        {"query": []},
        {"query": ["x", 5]},
        {"query": ["x" * 9_000, "y" * 9_000]},
        {"max_num_results": 0},
        {"max_num_results": 51},
        {"filters": {}},
        {"filters": {"type": "eq", "key": "a"}},
        {"filters": {"type": "like", "key": "a", "value": "b"}},
        {"filters": {"type": "eq", "key": "a", "value": ["b"]}},
        {"filters": {"type": "in", "key": "a", "value": "b"}},
        {"filters": {"type": "eq", "key": "a", "value": "\x00"}},
        {"filters": {"type": "and", "filters": []}},
        {"filters": {"type": "and", "filters": [{"type": "eq"}]}},
        {"ranking_options": {"ranker": "mine"}},
        {"ranking_options": {"score_threshold": 2}},
        {"ranking_options": {"hybrid_search": {"embedding_weight": 1, "text_weight": 1}}},
    ],
    ids=lambda wrong: str(wrong)[:60],
)
def test_bad_searches_get_openais_error(
    client: openai.OpenAI, curie: str, counts: Counts, wrong: dict[str, Any]
) -> None:
    before = counts()
    with pytest.raises(openai.UnprocessableEntityError) as caught:
        client.vector_stores.search(curie, **({"query": QUESTION} | wrong))
    assert caught.value.type == "invalid-request"
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["message"]
    assert caught.value.param is None
    assert counts() == before


def test_filters_that_are_nested_too_deeply(client: openai.OpenAI, curie: str) -> None:
    nested: Any = {"type": "eq", "key": "a", "value": 1}
    for _ in range(6):
        nested = {"type": "and", "filters": [nested]}
    with pytest.raises(openai.UnprocessableEntityError, match="nested deeper than 5 levels"):
        client.vector_stores.search(curie, query=QUESTION, filters=nested)


def test_stores_that_are_not_there(client: openai.OpenAI, counts: Counts) -> None:
    before = counts()
    with pytest.raises(openai.NotFoundError, match="nowhere"):
        client.vector_stores.retrieve("nowhere")
    with pytest.raises(openai.NotFoundError, match="nowhere"):
        client.vector_stores.search("nowhere", query=QUESTION)
    with pytest.raises(openai.UnprocessableEntityError):
        client.vector_stores.list(limit=101)
    assert counts() == before


def test_methods_that_are_not_there_answer_in_the_same_words(http: TestClient, curie: str) -> None:
    answer = http.delete(f"/v1/vector_stores/{curie}")
    assert_problem(answer)
    assert (answer.status_code, answer.json()["error"]["code"]) == (405, 405)
