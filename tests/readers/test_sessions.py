"""Sessions go by readers: in their rounds, and whenever what they found is read again."""

from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from tests.conftest import CURIE
from tests.readers.conftest import Client, Put
from tests.support.strict_client import TestClient

pytestmark = pytest.mark.wing("sessions")
QUESTION = "Into which sea does the river that the birthplace of Marie Curie lies on flow?"
HIDDEN = "vistula"
SCOPES = ("query", "read", "judge", "ingest")


@pytest.fixture
def docs(put: Put) -> str:
    name = f"sessions-{uuid4().hex[:8]}"
    put(name, *(one | {"readers": ["group:hr"] if one["id"] == HIDDEN else None} for one in CURIE))
    return name


def start(client: TestClient, collection: str, *, wait: bool = True, **more: Any) -> Any:
    body = {"question": QUESTION, "collection": collection, "planner": "pool", "top_k": 2, "wait": wait, **more}
    answer = client.post("/sessions", json=body)
    assert answer.status_code == (200 if wait else 202), answer.text
    return answer.json()


def found(session: Any) -> set[str]:
    return {one["passage_id"] for one in session["evidence"]} | {one["passage_id"] for one in session["passages"]}


@pytest.mark.parametrize("wait", [True, False])
def test_a_session_finds_what_its_asker_may_read(docs: str, keyed: Application, client: Client, wait: bool) -> None:
    for caller, sees in ((client("group:hr"), True), (client("user:ana"), False)):
        session = start(caller, docs, wait=wait)
        keyed.jobs.runner.run_ready()
        read = caller.get(f"/sessions/{session['session_id']}", params={"collection": docs})
        assert read.json()["status"] == "stopped"
        assert (HIDDEN in found(read.json())) is sees
        assert ("Baltic" in read.text) is sees
        assert "Warsaw" in read.text
        events = caller.get(f"/sessions/{session['session_id']}/events", params={"collection": docs}).text
        assert ("event: end" in events, "Baltic" in events) == (True, sees)


def test_a_session_that_waits_does_the_one_before_it_for_whom_that_is(docs: str, client: Client) -> None:
    """A request that waits does what is ready before it in its lane, of whomever."""
    hr, ana = client("group:hr"), client("user:ana")
    queued = [start(hr, docs, wait=False)["session_id"] for _ in range(8)]
    for _ in range(8):
        assert HIDDEN not in found(start(ana, docs))
    where = {"params": {"collection": docs}}
    done = [
        one for one in (hr.get(f"/sessions/{id}", **where).json() for id in queued) if one["status"] == "stopped"
    ]
    assert done
    assert all(HIDDEN in found(one) for one in done)


def test_a_session_is_seen_by_its_asker(docs: str, client: Client, admin: TestClient) -> None:
    hr = client("group:hr")
    session = start(hr, docs)["session_id"]
    url, where = f"/sessions/{session}", {"params": {"collection": docs}}
    for other in (client("user:ana"), client("group:hr", "user:bo")):
        missing = other.get(f"/sessions/{uuid4()}", **where)
        for answer in (other.get(url, **where), other.delete(url, **where), other.get(f"{url}/events", **where)):
            assert answer.status_code == missing.status_code == 404
        assert other.post(f"{url}/rounds", json={"collection": docs}).status_code == 404
        assert other.get("/sessions", **where).json()["sessions"] == []
    assert [one["session_id"] for one in hr.get("/sessions", **where).json()["sessions"]] == [session]
    assert HIDDEN in found(admin.get(url, **where).json())
    auditor = client("user:ana", scopes=[*SCOPES, "audit"]).get(url, **where)
    assert auditor.status_code == 200
    assert "Baltic" not in auditor.text


def test_who_audits_reads_a_session_and_puts_no_word_into_it(docs: str, client: Client, admin: TestClient) -> None:
    ana, auditor = client("user:ana"), client("group:hr", scopes=[*SCOPES, "audit"])
    session = start(ana, docs)
    url, where = f"/sessions/{session['session_id']}", {"params": {"collection": docs}}
    hidden = {"passage_id": HIDDEN, "text": "The Vistula flows"}
    for more in ({"question": "Does the Vistula flow into the Baltic?"}, {"evidence": [hidden]}):
        refused = auditor.post(f"{url}/rounds", json={"collection": docs, "wait": True, **more})
        assert (refused.status_code, refused.json()["scope"]) == (403, "admin"), refused.text
    assert auditor.delete(url, **where).status_code == 403
    assert ana.get(url, **where).json() == session
    gone_on = admin.post(f"{url}/rounds", json={"collection": docs, "question": QUESTION, "wait": True})
    assert gone_on.status_code == 200, gone_on.text
    assert admin.delete(url, **where).status_code == 200


def test_a_frontend_has_sessions_of_whom_it_asks_for(docs: str, client: Client, local: TestClient) -> None:
    for frontend in (client(scopes=["query", "judge", "act-as"]), local):
        asked, params = {"as": ["group:hr"]}, {"collection": docs, "as": "group:hr"}
        session = start(frontend, docs, **asked)
        url = f"/sessions/{session['session_id']}"
        assert HIDDEN in found(session)
        assert found(frontend.get(url, params=params).json()) == found(session)
        for other in ("user:ana", ""):
            assert frontend.get(url, params=params | {"as": other}).status_code == 404
            assert frontend.get("/sessions", params=params | {"as": other}).json()["sessions"] == []
        listed = frontend.get("/sessions", params=params).json()["sessions"]
        assert session["session_id"] in [one["session_id"] for one in listed]
        assert HIDDEN not in found(start(frontend, docs, **{"as": []}))
        round_ = {"collection": docs, "question": "Where was Marie Curie born?", "wait": True}
        assert frontend.post(f"{url}/rounds", json=round_ | {"as": ["user:ana"]}).status_code == 404
        assert frontend.post(f"{url}/rounds", json=round_ | asked).status_code == 200
        sentence = session["evidence"][0]["sentence_id"]
        verdict = {"collection": docs, "supporting": [sentence], "wait": True}
        key = {"headers": {"idempotency-key": str(uuid4())}}
        assert frontend.post(f"{url}/feedback", json=verdict | {"as": []}, **key).status_code == 404
        judged = frontend.post(f"{url}/feedback", json=verdict | asked, **key)
        assert judged.status_code == 200, judged.text
        assert frontend.delete(url, params=params).status_code == 200


def test_what_was_hidden_since_is_in_no_session(docs: str, client: Client, admin: TestClient) -> None:
    hr = client("group:hr")
    session = start(hr, docs)
    url, where = f"/sessions/{session['session_id']}", {"params": {"collection": docs}}
    assert HIDDEN in found(session)
    assert any(one["queries"] for one in session["rounds"])
    admin.patch(f"/passages/{HIDDEN}", json={"readers": ["group:it"]}, **where)
    for answer in (hr.get(url, **where), hr.get(f"{url}/events", **where)):
        assert not any(word in answer.text for word in (HIDDEN, "Baltic"))
    again = hr.get(url, **where).json()
    assert found(again) == found(session) - {HIDDEN}
    assert [(one["queries"], one["sub_question"], one["said"]) for one in again["rounds"]] == [
        ([], None, {"withheld": True}) for _ in session["rounds"]
    ]
    assert again["notes"] == []
    named = {"collection": docs, "evidence": [{"passage_id": HIDDEN, "text": "The Vistula flows"}], "wait": True}
    refused = hr.post(f"{url}/rounds", json=named)
    assert refused.status_code == 422, refused.text
    gone_on = hr.post(f"{url}/rounds", json={"collection": docs, "question": QUESTION, "wait": True})
    assert gone_on.status_code == 200
    assert not any(word in gone_on.text for word in (HIDDEN, "Baltic"))
    admin.patch(f"/passages/{HIDDEN}", json={"readers": None}, **where)
    assert HIDDEN in found(hr.get(url, **where).json())
