"""What a tenant may have: refused once it had it, and counted only where something is set."""

from dataclasses import replace
from typing import Any

import pytest

from engram.composition.container import Application
from engram.composition.parts import auth_services
from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.quotas import LlmBudgetError
from engram.services.auth.scope import LOCAL, Principal
from engram.services.question.query import Query
from engram.storage.auth.tenants import Quotas
from tests.api.conftest import Variant
from tests.api.operations import BODIES, assert_problem
from tests.support.constants import ACCESS_CACHE, set_constants
from tests.support.openai_server import OpenAiServer
from tests.support.statements import record_statements
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"


@pytest.fixture
def guarded(variant: Variant, llm_server: OpenAiServer, monkeypatch: pytest.MonkeyPatch) -> Application:
    set_constants(monkeypatch, {ACCESS_CACHE: 60.0})
    return variant(access="keys", llm_base_url=llm_server.base_url)


def client(guarded: Application, tenant: str, scopes: list[str] | None = None, **more: Any) -> TestClient:
    wanted = AccessKeyRequest(name="app", scopes={"*": scopes or ["admin"]}, **more)
    made = guarded.auth.access_keys.make(LOCAL, wanted, tenant)
    headers = {"authorization": f"Bearer {made.key}"}
    return TestClient(create_app(guarded), raise_server_exceptions=False, headers=headers)


def passages(count: int) -> dict[str, Any]:
    return {"passages": [{"id": str(n), "text": f"The Thames has {n} bridges."} for n in range(count)]}


def test_passages_and_jobs(guarded: Application, collection: str) -> None:
    guarded.auth.access_keys.set_tenant(collection, Quotas(passages=3, jobs=1))
    app = client(guarded, collection)
    where = {"collection": collection}
    assert app.post("/passages", params=where, json=passages(4)).status_code == 429
    lines = b"".join(b'{"id": "%d", "text": "A bridge."}\n' % n for n in range(600))
    streamed = app.post("/passages", params=where, content=lines, headers={"content-type": "application/x-ndjson"})
    assert streamed.status_code == 429
    assert app.post("/passages", params=where, json=passages(3)).status_code == 202

    waiting = app.post("/passages", params=where, json=passages(1))
    assert_problem(waiting)
    assert (waiting.status_code, waiting.json()["quota"], waiting.headers["retry-after"]) == (429, "jobs", "30")
    guarded.jobs.runner.run_ready()
    full = app.post("/passages", params=where, json=passages(1))
    assert (full.status_code, full.json()["quota"], full.json()["limit"]) == (429, "passages", 3)
    assert "retry-after" not in full.headers
    assert app.get("/access/me").json()["tenant"] == collection


def test_queries_and_verdicts_of_a_day(guarded: Application, collection: str) -> None:
    guarded.auth.access_keys.set_tenant(collection, Quotas(queries=2, verdicts=1))
    app = client(guarded, collection)
    where = {"collection": collection}
    app.post("/passages", params=where, json=passages(1))
    guarded.jobs.runner.run_ready()
    asked = [app.post("/query", json={"query": QUESTION, **where}) for _ in range(3)]
    assert [answer.status_code for answer in asked] == [200, 200, 429]
    assert 0 < int(asked[-1].headers["retry-after"]) <= 86_401
    verdict = {"query_id": asked[0].json()["query_id"], **where}
    given = [app.post("/feedback", json=verdict, headers={"idempotency-key": str(n)}) for n in range(2)]
    assert [answer.status_code for answer in given] == [202, 429]
    (shown,) = [tenant for tenant in guarded.auth.access_keys.tenants() if tenant.name == collection]
    assert (shown.quotas.queries, shown.passages, shown.keys, shown.collections) == (2, 1, 1, 1)


def test_usage_is_not_counted_without_quotas(guarded: Application, curie: str) -> None:
    app = client(guarded, "local")
    app.get("/access/me")
    # What a process keeps of the graph is read by then.
    guarded.answers.question.answer(Query(text=QUESTION, scope=guarded.auth.access.scope(curie)))
    with record_statements() as first:
        app.post("/query", json={"query": QUESTION, "collection": curie})
    with record_statements() as second:
        app.post("/query", json={"query": QUESTION, "collection": curie})
    assert first.statements == second.statements + 1, "the quotas of the tenant, once"


def test_a_language_model_takes_its_scope_and_its_budget(
    guarded: Application, curie: str, llm_server: OpenAiServer
) -> None:
    asked = {"query": QUESTION, "collection": curie}
    plain = client(guarded, "local", ["query"])
    worded = {"/answer": {}, "/query": {"stop_rule": "llm"}, "/expand": {"methods": ["hyde"]}}
    for path in worded.keys() & BODIES.keys():
        more = worded[path]
        refused = plain.post(path, json=asked | more)
        assert refused.status_code == 403, path
    assert llm_server.requests == []

    bounded = client(guarded, "local", ["query", "llm"], llm_tokens=5)
    llm_server.queue('{"answer": "In Warsaw.", "cited": [], "sufficient": true}')
    first = bounded.post("/answer", json=asked)
    assert (first.status_code, first.json()["answer"]) == (200, "In Warsaw."), first.text
    spent = bounded.post("/answer", json=asked).json()
    assert spent["warnings"][0]["type"] == "not-answered"
    assert "used up its 5 tokens" in spent["warnings"][0]["detail"]
    assert spent["retrieval"]["passages"], "what can be done without it is"
    assert len(llm_server.requests) == 1


def test_collections_and_keys(guarded: Application, collection: str) -> None:
    guarded.auth.access_keys.set_tenant(collection, Quotas(collections=1, keys=2))
    app = client(guarded, collection)
    assert app.post("/passages", params={"collection": "one"}, json=passages(1)).status_code == 202
    assert app.post("/passages", params={"collection": "one"}, json=passages(1)).status_code == 202
    second = app.post("/passages", params={"collection": "two"}, json=passages(1))
    assert_problem(second)
    assert (second.status_code, second.json()["quota"], second.json()["limit"]) == (429, "collections", 1)
    assert [one["name"] for one in app.get("/collections").json()["collections"]] == ["one"]
    made = [app.post("/access/keys", json={"name": "more", "scopes": {"*": ["read"]}}) for _ in range(2)]
    assert [answer.status_code for answer in made] == [201, 429]
    assert made[1].json()["quota"] == "keys"
    shown = {one["kind"]: (one["used"], one["limit"]) for one in app.get("/access/quotas").json()["quotas"]}
    assert (shown["collections"], shown["keys"]) == ((1, 1), (2, 2))


def test_the_last_token_ends_the_budget(guarded: Application, collection: str) -> None:
    guarded.auth.access_keys.set_tenant(collection, Quotas(llm_tokens=5))
    meter = guarded.auth.quotas.meter(Principal("app", collection))
    assert meter is not None
    meter.add(4)
    meter.check()
    meter.add(1)
    with pytest.raises(LlmBudgetError, match="has used up its 5 tokens"):
        meter.check()


def test_people_that_a_key_names_share_its_budget(guarded: Application, collection: str) -> None:
    guarded.auth.access_keys.set_tenant(collection, Quotas())
    frontend = Principal("frontend", collection, llm_tokens=5)
    spent, fresh = (guarded.auth.quotas.meter(frontend.name_person(f"user:{name}")) for name in ("ana", "bo"))
    assert spent is not None
    assert fresh is not None
    spent.add(5)
    with pytest.raises(LlmBudgetError, match="key of 'frontend' has used up its 5 tokens"):
        fresh.check()


@pytest.mark.wing("facts", "sessions")
def test_sessions_and_facts(guarded: Application, collection: str) -> None:
    guarded.auth.access_keys.set_tenant(collection, Quotas(sessions=1, facts=2))
    app = client(guarded, collection)
    app.post("/passages", params={"collection": "one"}, json=passages(1))
    session = {"question": QUESTION, "collection": "one"}
    assert [app.post("/sessions", json=session).status_code for _ in range(2)] == [202, 429]

    fact = {"subject": "Ada", "predicate": "knows", "object": "Bea"}
    stated = [
        app.post("/facts", json={"collection": "one", "source": "me", "facts": [fact | {"object": f"Bea {n}"}] * n})
        for n in (2, 1)
    ]
    assert [answer.status_code for answer in stated] == [200, 429]
    assert stated[1].json()["quota"] == "facts"
    shown = {one["kind"]: (one["used"], one["limit"]) for one in app.get("/access/quotas").json()["quotas"]}
    assert (shown["sessions"], shown["facts"]) == ((1, 1), (2, 2))


def test_tenants_have_quotas_by_default_and_local_has_none(
    variant: Variant, collection: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth_services, "QUOTAS", replace(auth_services.QUOTAS, collections=1, keys=None))
    bounded = variant(access="keys")
    theirs, ours = client(bounded, collection), client(bounded, "local")
    for name, status in (("one", 202), ("two", 429)):
        assert theirs.post("/passages", params={"collection": name}, json=passages(1)).status_code == status
    for name in (f"{collection}-a", f"{collection}-b"):
        assert ours.post("/passages", params={"collection": name}, json=passages(1)).status_code == 202
    limits = {one["kind"]: one["limit"] for one in theirs.get("/access/quotas").json()["quotas"]}
    assert (limits["collections"], limits["keys"], limits["passages"]) == (1, None, 1_000_000)
    assert {one["limit"] for one in ours.get("/access/quotas").json()["quotas"]} == {None}
