"""Strategies and expansions over HTTP: what is said of them, then and later, and what is refused."""

from typing import Any

import pytest

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


def test_a_question_unlike_its_only_candidate_is_answered(http: TestClient, curie: str) -> None:
    """The candidate's score is negative."""
    assert ask(http, curie, query="01ÀU")["hops"] == 1


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
