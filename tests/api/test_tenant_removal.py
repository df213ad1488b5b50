"""A tenant is removed: at once nobody is of it, and then nothing is left of it anywhere."""

from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from engram.context.errors import ConflictError, InvalidRequestError, NotFoundError
from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from engram.services.maintenance.tenant_closing import REMOVAL_REASON
from engram.storage.auth.tenants import Quotas
from tests.api.conftest import Variant
from tests.api.operations import assert_problem
from tests.services.corpus.test_erasure import places
from tests.support.constants import ACCESS_CACHE, set_constants
from tests.support.strict_client import TestClient

QUESTION = "Who lived by the river?"
MARK = "Zanzifarblub"


@pytest.fixture
def guarded(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> Application:
    set_constants(monkeypatch, {ACCESS_CACHE: 0.0})
    return variant(access="keys")


def client(guarded: Application, tenant: str, name: str, scopes: list[str]) -> TestClient:
    made = guarded.auth.access_keys.make(LOCAL, AccessKeyRequest(name=name, scopes={"*": scopes}), tenant)
    headers = {"authorization": f"Bearer {made.key}"}
    return TestClient(create_app(guarded), raise_server_exceptions=False, headers=headers)


def fill_all_rooms(app: TestClient, guarded: Application, collection: str, tenant: str) -> None:
    """Leave something in every room."""
    guarded.auth.access_keys.set_tenant(tenant, Quotas(queries=100, llm_tokens=5, judges=9))
    where = {"collection": collection}
    body = {"passages": [{"id": MARK, "title": MARK, "text": f"{MARK} lived by the river in 1871. It was long."}]}
    assert app.post("/passages", params=where, json=body, headers={"idempotency-key": MARK}).status_code == 202
    guarded.jobs.runner.run_ready()
    query = app.post("/query", json={"query": f"{QUESTION} {MARK}", **where}).json()
    verdict = {"query_id": query["query_id"], "supporting_passages": [MARK], "wait": True, **where}
    assert app.post("/feedback", json=verdict, headers={"idempotency-key": MARK}).status_code == 200
    judge = app.put(f"/collections/{collection}/judges/{MARK.lower()}", json={"daily_share": 0.5})
    assert judge.status_code == 200, judge.text
    facts = {"source": MARK, "facts": [{"subject": MARK, "predicate": "spouse", "object": "Pierre"}], **where}
    assert app.post("/facts", json=facts).status_code == 200
    session = app.post("/sessions", json={"question": f"{QUESTION} {MARK}", "planner": "pool", **where})
    assert session.status_code == 202, session.text
    guarded.jobs.runner.run_ready()


@pytest.mark.wing("facts", "sessions")
def test_removed_tenant_leaves_nothing_and_others_lose_nothing(guarded: Application, curie: str) -> None:
    tenant = f"acme-{uuid4().hex}"
    docs = f"{tenant}-docs"
    app = client(guarded, tenant, MARK.lower(), ["admin"])
    reader = client(guarded, tenant, "reader", ["query", "read"])
    fill_all_rooms(app, guarded, docs, tenant)
    assert len(places(guarded, MARK)) > 12
    assert len(places(guarded, tenant)) >= 3

    assert reader.delete("/access/tenant", params={"confirm": tenant}).status_code == 403
    wrong = app.delete("/access/tenant", params={"confirm": f"{tenant}x"})
    assert_problem(wrong)
    assert wrong.status_code == 422
    assert app.get(f"/collections/{docs}").status_code == 200

    closed = app.delete("/access/tenant", params={"confirm": tenant})
    assert (closed.status_code, closed.json()) == (202, {"tenant": tenant})
    for one in (app, reader):
        assert one.get("/access/me").status_code == 401
    with pytest.raises(ConflictError, match="is being removed"):
        guarded.auth.access_keys.make(LOCAL, AccessKeyRequest(name="again", scopes={"*": ["read"]}), tenant)

    assert guarded.maintenance.closing.run(lambda: True) == []  # told to stop, and gone on with
    assert tenant in guarded.maintenance.closing.run()  # beside what other tests closed
    assert guarded.maintenance.closing.run() == []

    assert places(guarded, MARK) == set()
    assert places(guarded, tenant) == {"audit_log"}  # that it was removed, and by whom that is to be known
    acts = [act for act in guarded.maintenance.audit_log.page(LOCAL, None, 20) if act.target == tenant]
    assert [(act.action, act.status) for act in acts] == [(REMOVAL_REASON, 200)]
    assert guarded.auth.access.scope(curie).collection.passage_count == 5
    with pytest.raises(NotFoundError):
        guarded.maintenance.closing.close(tenant, tenant)


def test_the_tenant_of_those_who_need_no_key_stays(http: TestClient, application: Application) -> None:
    refused = http.delete("/access/tenant", params={"confirm": "local"})
    assert_problem(refused)
    assert refused.status_code == 409
    with pytest.raises(InvalidRequestError, match="confirm it by its name"):
        application.maintenance.closing.close("local", "")


def test_judges_have_a_quota(guarded: Application, collection: str) -> None:
    guarded.auth.access_keys.set_tenant(collection, Quotas(judges=2))
    app = client(guarded, collection, "app", ["admin"])
    where = {"collection": collection}
    body = {"passages": [{"id": "a", "text": "The Thames has a bridge."}]}
    assert app.post("/passages", params=where, json=body).status_code == 202
    guarded.jobs.runner.run_ready()
    query = app.post("/query", json={"query": QUESTION, **where}).json()["query_id"]

    def judge(number: int, **more: Any) -> Any:
        verdict = {"query_id": query, "supporting_passages": ["a"], **where, **more}
        return app.post("/feedback", json=verdict, headers={"idempotency-key": str(number)})

    assert judge(1).status_code == 202
    assert judge(2, judge="second").status_code == 202
    third = judge(3, judge="third")
    assert_problem(third)
    assert (third.status_code, third.json()["quota"], third.json()["limit"]) == (429, "judges", 2)
    assert "retry-after" not in third.headers
    put = app.put(f"/collections/{collection}/judges/fourth", json={"daily_share": 0.5})
    assert (put.status_code, put.json()["quota"]) == (429, "judges")
    assert judge(4, judge="second").status_code == judge(5).status_code == 202
    assert app.put(f"/collections/{collection}/judges/second", json={"daily_share": 0.5}).status_code == 200


@pytest.mark.wing("facts")
def test_idempotency_keys_are_separate_per_principal(guarded: Application, collection: str) -> None:
    """Two that use one Idempotency-Key for different things each get what they asked for."""
    tenant = collection
    one = client(guarded, tenant, "one", ["ingest", "query", "judge", "admin"])
    two = client(guarded, tenant, "two", ["ingest", "query", "judge", "admin"])
    where, key = {"collection": collection}, {"idempotency-key": "the-same"}
    jobs = []
    for app, name in ((one, "a"), (two, "b")):
        body = {"passages": [{"id": name, "text": f"Passage {name} speaks of the Thames."}]}
        sent = app.post("/passages", params=where, json=body, headers=key)
        assert sent.status_code == 202, sent.text
        jobs.append(sent.json()["job_id"])
        assert app.post("/passages", params=where, json=body, headers=key).json()["job_id"] == jobs[-1]
    assert len(set(jobs)) == 2
    guarded.jobs.runner.run_ready()
    events = []
    for app, name in ((one, "a"), (two, "b")):
        query = app.post("/query", json={"query": QUESTION, **where}).json()["query_id"]
        verdict = {"query_id": query, "supporting_passages": [name], **where}
        given = app.post("/feedback", json=verdict, headers=key)
        assert given.status_code == 202, given.text
        assert given.json()["judge"] == {"a": "one", "b": "two"}[name]
        events.append(given.json()["feedback_id"])
        assert app.post("/feedback", json=verdict, headers=key).json()["feedback_id"] == events[-1]
        other = app.post(
            "/feedback", json=verdict | {"supporting_passages": []} | {"none_helped": True}, headers=key
        )
        assert other.status_code == 422  # its own key, for another verdict
        fact = {"source": name, "facts": [{"subject": name, "predicate": "spouse", "object": "Pierre"}], **where}
        stated = app.post("/facts", json=fact, headers=key)
        assert stated.status_code == 200, stated.text
    assert len(set(events)) == 2
