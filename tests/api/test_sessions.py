"""Sessions over HTTP, without an LLM: rounds by rules, rounds of the caller's, events, budgets, cancelling."""

from typing import Any

from fastapi.testclient import TestClient

CHAIN = "Into which sea does the river that the birthplace of Marie Curie lies on flow?"


def start(http: TestClient, collection: str, **body: Any) -> Any:
    response = http.post("/sessions", json={"collection": collection, "question": CHAIN, "wait": True} | body)
    assert response.status_code == 200, response.text
    return response.json()


def test_a_session_goes_through_rounds_until_nothing_is_missing(http: TestClient, curie: str) -> None:
    body = start(http, curie, planner="pool", top_k=2, stop={"rule": "planner", "threshold": 1})
    assert body["status"] == "stopped"
