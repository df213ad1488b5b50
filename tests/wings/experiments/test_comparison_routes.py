"""Two arms side by side, over HTTP."""

from typing import Any

import pytest

from engram.composition.container import Application
from tests.api.conftest import Counts
from tests.api.operations import assert_refused
from tests.support import state
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"
OTHER_QUESTION = "Which element did Marie Curie discover in 1898?"
BORN = "Marie Curie was born in Warsaw in 1867."
DISCOVERY = "Marie Curie discovered polonium in 1898."


def ask(http: TestClient, name: str, text: str = QUESTION, **more: Any) -> dict[str, Any]:
    response = http.post("/query", json={"collection": name, "query": text} | more)
    assert response.status_code == 200, response.text
    document: dict[str, Any] = response.json()
    return document


@pytest.fixture
def taught(http: TestClient, application: Application, curie: str) -> None:
    """Three verdicts, the second of another question."""
    ids = state.sentences(application, curie, "curie")
    asked = [ask(http, curie, text)["query_id"] for text in (QUESTION, OTHER_QUESTION, QUESTION)]
    verdicts = ((BORN, "alice"), (DISCOVERY, "bob"), (BORN, "carol"))
    for query_id, (sentence, judge) in zip(asked, verdicts, strict=True):
        state.judge(application, curie, query_id, [ids[sentence]], judge=judge, wait=True)


@pytest.mark.usefixtures("taught")
def test_two_arms_side_by_side(http: TestClient, curie: str, counts: Counts) -> None:
    before = counts()
    compared = http.post("/query/compare", json={"collection": curie, "query": QUESTION, "top_k": 2}).json()
    assert counts() == before  # no episode among them
    assert (compared["a"]["memory"], compared["b"]["memory"]) == ("off", "read")
    nothing = {"recalled": 0, "moved": 0, "key_generation": 0}
    assert compared["a"]["read"] == nothing
    assert compared["b"]["read"]["recalled"] >= 1
    assert compared["b"]["read"]["moved"] == 0  # this profile reads no sentence memories
    for side, arm in (("a", {"memory": "off"}), ("b", {"memory": "read"})):
        answer = ask(http, curie, arm=arm, top_k=100)
        assert (compared[side]["hops"], compared[side]["stop_reason"]) == (answer["hops"], answer["stop_reason"])
        for rank, passage in enumerate(answer["passages"], start=1):
            rows = [row for row in compared["passages"] if row["passage_id"] == passage["passage_id"]]
            assert len(rows) == 1 or rank > 2
            for row in rows:
                assert row[f"rank_{side}"] == rank
                assert row[f"score_{side}"] == pytest.approx(passage["score"])


def test_arms_of_any_strategy_compare(http: TestClient, curie: str) -> None:
    body = {"collection": curie, "query": QUESTION, "a": {"strategy": "lexical"}, "b": {"profile": "paper"}}
    compared = http.post("/query/compare", json=body).json()
    assert (compared["a"]["strategy"], compared["a"]["stop_reason"]) == ("lexical", "no_hops")
    assert any(row["rank_a"] is None for row in compared["passages"])  # tokyo shares no word with the question
    refused: Any = http.post("/query/compare", json=body | {"max_hops": 2})
    assert refused.status_code == 422
    assert_refused(refused)


@pytest.mark.usefixtures("taught")
def test_a_shadow_collection_is_compared_with_memory(http: TestClient, curie: str) -> None:
    body = {"collection": curie, "query": QUESTION}
    live = http.post("/query/compare", json=body).json()
    assert http.patch(f"/collections/{curie}", json={"serving": "shadow"}).status_code == 200
    assert ask(http, curie)["memory"] == "off"
    shadow = http.post("/query/compare", json=body).json()
    assert shadow["b"]["read"] == live["b"]["read"]
    assert shadow["passages"] == live["passages"]


def test_a_comparison_shows_no_vector(http: TestClient, curie: str) -> None:
    compared = http.post("/query/compare", json={"collection": curie, "query": QUESTION}).json()
    assert longest(compared) < 50


def longest(node: Any) -> int:
    """The most numbers in any list."""
    if isinstance(node, dict):
        return max((longest(value) for value in node.values()), default=0)
    if isinstance(node, list):
        numbers = sum(isinstance(value, int | float) for value in node)
        return max([numbers, *(longest(value) for value in node)])
    return 0


def test_a_missing_collection_is_404(http: TestClient) -> None:
    assert http.post("/query/compare", json={"collection": "nowhere", "query": QUESTION}).status_code == 404
