"""Near-duplicates over HTTP: the parameter, the setting, and the answer read again."""

from typing import Any

import pytest

from tests.conftest import CURIE, Ingest
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"


@pytest.fixture
def doubled(ingest: Ingest, curie: str) -> str:
    """The five linked passages and a copy of each."""
    ingest(*({**passage, "id": f"{passage['id']}-copy", "metadata": {"copy": True}} for passage in CURIE))
    return curie


def ask(http: TestClient, collection: str, **more: Any) -> dict[str, Any]:
    response = http.post("/query", json={"collection": collection, "query": QUESTION, "top_k": 10} | more)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_an_answer_names_what_it_left_out(http: TestClient, doubled: str) -> None:
    answer = ask(http, doubled, include=["trace"])
    assert answer["collapse_duplicates"] is True
    assert answer["trace"]["collapsed"] == len(answer["passages"]) == 5
    for hit in answer["passages"]:
        [duplicate] = hit["duplicates"]
        assert duplicate == {
            "passage_id": f"{hit['passage_id']}-copy",
            "title": hit["title"],
            "metadata": {"copy": True},
            "source": hit["source"],
        }


def test_an_answer_read_again_names_the_same(http: TestClient, doubled: str) -> None:
    answer = ask(http, doubled)
    again = http.get(f"/queries/{answer['query_id']}", params={"collection": doubled}).json()
    assert again["passages"] == answer["passages"]
    assert (again["collapse_duplicates"], again["trace"]["collapsed"]) == (True, 5)


def test_a_duplicate_that_is_deleted_is_named_no_more(http: TestClient, doubled: str) -> None:
    answer = ask(http, doubled)
    first = answer["passages"][0]
    [duplicate] = first["duplicates"]
    where = {"collection": doubled}
    assert http.delete(f"/passages/{duplicate['passage_id']}", params=where).status_code == 204
    again = http.get(f"/queries/{answer['query_id']}", params=where).json()
    assert again["passages"][0] == first | {"duplicates": []}
