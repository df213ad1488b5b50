"""Strategies and expansions over HTTP: what is said of them, then and later, and what is refused."""

from typing import Any

import pytest

from tests.api.conftest import Counts
from tests.api.operations import assert_refused
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"
UNITS = [{"method": "hyde", "text": "She was born in the capital of Poland."}, {"method": "prf", "text": "1867"}]
PLAIN_STRATEGIES = ["dense", "lexical", "hybrid"]


def ask(http: TestClient, collection: str, **more: Any) -> Any:
    response = http.post("/query", json={"collection": collection, "query": QUESTION} | more)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.parametrize("strategy", ["graph", *PLAIN_STRATEGIES])
def test_an_answer_and_its_episode_name_their_strategy(http: TestClient, curie: str, strategy: str) -> None:
    answer = ask(http, curie, arm={"strategy": strategy}, include=["trace", "entities"])
    assert answer["strategy"] == strategy
    assert answer["passages"][0]["passage_id"] == "curie"
    assert (answer["hops"] == 0) == (answer["stop_reason"] == "no_hops") == (strategy != "graph")

    episode = http.get(f"/queries/{answer['query_id']}", params={"collection": curie}).json()

    assert episode.pop("judged") == 0
    assert episode.pop("created_at")
    assert episode.pop("expansions") == []
    assert episode.pop("filter") is None
    shown = [(one["passage_id"], one["changed"]) for one in episode.pop("shown_texts")]
    assert shown == [(hit["passage_id"], False) for hit in answer["passages"]]
    assert episode == answer


def test_the_graph_is_walked_unless_another_strategy_is_named(http: TestClient, curie: str) -> None:
    answer = ask(http, curie)
    assert (answer["strategy"], answer["expanded"]) == ("graph", False)
    assert answer["hops"] > 0


@pytest.mark.parametrize("strategy", ["graph", *PLAIN_STRATEGIES])
def test_expansions_are_kept_as_a_verdict_takes_them(http: TestClient, curie: str, strategy: str) -> None:
    answer = ask(http, curie, arm={"strategy": strategy}, expansions=UNITS)
    assert answer["expanded"] is True
    assert "expansions" not in answer
    episode = http.get(f"/queries/{answer['query_id']}", params={"collection": curie}).json()
    assert episode["expanded"] is True
    assert episode["expansions"] == UNITS
    body = {"collection": curie, "query_id": answer["query_id"], "expansions": episode["expansions"]}
    response = http.post(
        "/feedback", json=body | {"none_helped": True, "wait": True}, headers={"idempotency-key": "expanded"}
    )
    assert response.status_code == 200, response.text
    assert response.json()["status"] == "applied"


@pytest.mark.parametrize("strategy", PLAIN_STRATEGIES)
@pytest.mark.parametrize("bound", [{"max_hops": 3}, {"stop_rule": "none"}, {"stop_rule": "coverage"}])
def test_hops_cannot_be_bounded_where_none_is_made(
    http: TestClient, curie: str, counts: Counts, strategy: str, bound: dict[str, Any]
) -> None:
    before = counts()
    body = {"collection": curie, "query": QUESTION, "arm": {"strategy": strategy}} | bound
    response = http.post("/query", json=body)
    assert response.status_code == 422
    assert_refused(response)
    assert response.json()["type"] == "urn:engram:problem:invalid-request"
    assert counts() == before
    assert ask(http, curie, arm={"strategy": strategy}, max_hops=None, stop_rule=None)["hops"] == 0
    assert ask(http, curie, arm={"strategy": "graph"}, **bound)["hops"] > 0


@pytest.mark.parametrize("strategy", PLAIN_STRATEGIES)
def test_a_collection_that_is_not_there_is_not_found(http: TestClient, strategy: str) -> None:
    body = {"collection": "no-such-collection", "query": QUESTION, "arm": {"strategy": strategy}}
    response = http.post("/query", json=body)
    assert response.status_code == 404
    assert_refused(response)


def test_the_longest_expansions_are_taken(http: TestClient, curie: str) -> None:
    units = [{"method": "m" * 100, "text": f"{number} " + "capital of Poland " * 33} for number in range(20)]
    units[-1]["text"] += "capital of Poland " * 16  # 2,048 tokens together
    longer = [*units[:-1], {"method": "m", "text": units[-1]["text"] + "Warsaw"}]
    for strategy in ("dense", "lexical"):
        assert ask(http, curie, arm={"strategy": strategy}, expansions=units)["passages"]
        body = {"collection": curie, "query": QUESTION, "arm": {"strategy": strategy}, "expansions": longer}
        response = http.post("/query", json=body)
        assert response.status_code == 422
        assert (response.json()["limit"], response.json()["tokens"]) == (2048, 2049)
