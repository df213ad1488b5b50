"""Trace ids: taken from the body or the headers, stored, answered, and found again."""

from typing import Any

import pytest

from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from tests.api.conftest import Variant
from tests.support.modelled import ModelApplications
from tests.support.openai_server import keyword_handler
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}


def ask(http: TestClient, collection: str, headers: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    response = http.post("/query", json={"query": QUESTION, "collection": collection} | more, headers=headers)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def list_traced_queries(http: TestClient, collection: str, trace_id: str) -> list[str]:
    response = http.get("/queries", params={"collection": collection, "trace_id": trace_id})
    assert response.status_code == 200, response.text
    return [query["query_id"] for query in response.json()["queries"]]


def test_a_trace_id_is_stored_answered_and_found(http: TestClient, curie: str) -> None:
    first, second = (ask(http, curie, trace_id="message-7") for _ in range(2))
    other = ask(http, curie)
    assert (first["trace_id"], other["trace_id"]) == ("message-7", None)
    assert http.get(f"/queries/{first['query_id']}").json()["trace_id"] == "message-7"
    assert list_traced_queries(http, curie, "message-7") == [first["query_id"], second["query_id"]]
    assert list_traced_queries(http, curie, "message-8") == []


@pytest.mark.parametrize(
    ("headers", "body", "stored"),
    [
        (PARENT, {}, TRACE),
        (PARENT, {"trace_id": "mine"}, "mine"),
        ({"traceparent": "00-nonsense"}, {}, None),
    ],
)
def test_the_body_comes_before_the_header_and_an_invalid_header_is_ignored(
    http: TestClient, curie: str, headers: dict[str, str], body: dict[str, str], stored: str | None
) -> None:
    assert ask(http, curie, headers, **body)["trace_id"] == stored


def test_batch_questions_have_their_own_trace_id_or_the_requests(http: TestClient, curie: str) -> None:
    own, without = (
        {"query": QUESTION, "collection": curie, "trace_id": "own"},
        {"query": QUESTION, "collection": curie},
    )
    answers = http.post("/queries:batch", json={"queries": [own, without]}, headers=PARENT).json()["answers"]
    assert [one["answer"]["trace_id"] for one in answers] == ["own", TRACE]


@pytest.mark.parametrize("odd", ["", "two words", "ü", "x" * 201])
def test_an_odd_trace_id_is_refused(http: TestClient, curie: str, odd: str) -> None:
    assert http.post("/query", json={"query": QUESTION, "collection": curie, "trace_id": odd}).status_code == 422
    assert http.get("/queries", params={"collection": curie, "trace_id": odd}).status_code == 422


@pytest.mark.parametrize(
    ("headers", "body", "stored"),
    [
        ({"x-openwebui-message-id": "message-9"} | PARENT, {}, "message-9"),
        ({"x-openwebui-message-id": "{{ID}}"} | PARENT, {}, TRACE),
        ({"x-openwebui-message-id": "message-9"}, {"trace_id": "mine"}, "mine"),
    ],
)
@pytest.mark.wing("frontends")
def test_a_chat_answer_belongs_to_the_message_that_shows_it(
    modelled: ModelApplications, curie: str, headers: dict[str, str], body: dict[str, str], stored: str
) -> None:
    http = TestClient(create_app(modelled.application(keyword_handler)))
    message = {"model": curie, "messages": [{"role": "user", "content": QUESTION}]} | body
    grounds = http.post("/v1/chat/completions", json=message, headers=headers).json()["engram"]
    assert grounds["trace_id"] == stored
    assert grounds["query_id"] in list_traced_queries(http, curie, stored)


@pytest.mark.wing("sessions")
def test_a_session_gives_its_trace_to_its_own_question(http: TestClient, curie: str) -> None:
    body = {"question": QUESTION, "collection": curie, "trace_id": "session-1", "wait": True}
    session = http.post("/sessions", json=body).json()
    found = list_traced_queries(http, curie, "session-1")
    assert found
    for query in found:
        assert http.get(f"/queries/{query}").json()["query"] == session["question"] == QUESTION


def test_queries_of_other_keys_are_not_listed(variant: Variant, http: TestClient, curie: str) -> None:
    query = ask(http, curie, trace_id="shared")["query_id"]
    guarded = variant(access="keys")
    found = []
    for name, scopes in {"reader": ["query"], "auditor": ["query", "audit"]}.items():
        made = guarded.auth.access_keys.make(LOCAL, AccessKeyRequest(name=name, scopes={"*": scopes}), LOCAL.tenant)
        client = TestClient(create_app(guarded), headers={"authorization": f"Bearer {made.key}"})
        found.append(list_traced_queries(client, curie, "shared"))
    assert found == [[], [query]]
