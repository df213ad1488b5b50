"""Sessions of keys: which may use a language model, and on whose budget a worker's calls are."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engram.composition.container import Application
from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from tests.api.conftest import Variant
from tests.support.constants import LLM_ATTEMPTS, set_constants
from tests.support.openai_server import OpenAiServer
from tests.support.strict_client import TestClient

QUESTION = "Where was the mother of Irène Joliot-Curie born?"
KeyedClient = Callable[..., TestClient]


@pytest.fixture
def model() -> Iterator[OpenAiServer]:
    """A language model whose answers nothing can be made of."""
    with OpenAiServer(lambda _: "{}") as server:
        yield server


@pytest.fixture
def guarded(variant: Variant, model: OpenAiServer, monkeypatch: pytest.MonkeyPatch) -> Application:
    """An application that asks for keys and has a language model."""
    set_constants(monkeypatch, {LLM_ATTEMPTS: 1})
    return variant(access="keys", llm_base_url=model.base_url)


@pytest.fixture
def keyed(guarded: Application) -> KeyedClient:
    """Clients with keys of their own."""

    def client(name: str, *scopes: str, **more: Any) -> TestClient:
        made = guarded.auth.access_keys.make(LOCAL, AccessKeyRequest(name=name, scopes={"*": scopes}, **more))
        return TestClient(create_app(guarded), headers={"authorization": f"Bearer {made.key}"})

    return client


def test_session_plans_by_rules_without_llm_scope(keyed: KeyedClient, model: OpenAiServer, curie: str) -> None:
    client = keyed("asker", "query")
    body = {"collection": curie, "question": QUESTION, "planner": "pool", "wait": True}
    session = client.post("/sessions", json=body).json()
    assert (session["status"], session["cost"]["llm_calls"]) == ("stopped", 0)
    assert model.requests == []
    for needing in ({"planner": "socratic"}, {"answer": True}, {"stop": {"rule": "llm"}}):
        refused = client.post("/sessions", json=body | needing)
        assert (refused.status_code, refused.json()["scope"]) == (403, "llm")


def test_llm_calls_of_a_worker_use_the_askers_budget(
    keyed: KeyedClient, guarded: Application, model: OpenAiServer, curie: str
) -> None:
    client = keyed("spender", "query", "llm", llm_tokens=1)
    body = {"collection": curie, "question": QUESTION, "planner": "pool"}
    started = client.post("/sessions", json=body).json()
    guarded.jobs.runner.run_ready(collection_id=guarded.auth.access.scope(curie).collection.id)
    session = client.get(f"/sessions/{started['session_id']}", params={"collection": curie}).json()
    assert len(model.requests) == 1, "the next one is beyond what the key may spend a day"
    assert session["status"] == "stopped"
    assert "used up its 1 tokens" in str(session["warnings"] or session["rounds"])


def test_sessions_of_named_people_share_the_budget_of_the_key(
    keyed: KeyedClient, guarded: Application, model: OpenAiServer, curie: str
) -> None:
    client = keyed("frontend", "query", "llm", "act-as", llm_tokens=1)
    for name in ("user:ana", "user:bo"):
        body = {"collection": curie, "question": QUESTION, "planner": "pool", "as": [name]}
        assert client.post("/sessions", json=body).status_code == 202
    guarded.jobs.runner.run_ready(collection_id=guarded.auth.access.scope(curie).collection.id)
    assert len(model.requests) == 1


def test_session_without_access_keys_has_no_token_budget(variant: Variant, model: OpenAiServer, curie: str) -> None:
    client = TestClient(create_app(variant(llm_base_url=model.base_url)))
    body = {"collection": curie, "question": QUESTION, "planner": "pool", "wait": True}
    assert client.post("/sessions", json=body).json()["cost"]["llm_calls"] > 1


def test_a_key_lists_its_own_sessions_and_an_auditor_all(keyed: KeyedClient, curie: str) -> None:
    asked = {}
    for name in ("asker", "other"):
        client = keyed(name, "query")
        body = {"collection": curie, "question": QUESTION, "planner": "caller"}
        asked[name] = client.post("/sessions", json=body).json()["session_id"]
        listed = client.get("/sessions", params={"collection": curie}).json()["sessions"]
        assert [one["session_id"] for one in listed] == [asked[name]]
    every = keyed("auditor", "query", "audit").get("/sessions", params={"collection": curie}).json()["sessions"]
    assert [one["session_id"] for one in every] == [asked["other"], asked["asker"]]
