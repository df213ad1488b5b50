"""Revoking over HTTP: one verdict at once, many by a job."""

from typing import Any
from uuid import uuid4

from engram.composition.container import Application
from tests.support import state, undo
from tests.support.strict_client import TestClient


def judge(http: TestClient, collection: str, judge: str = "careful", wait: bool = True) -> dict[str, Any]:
    query = http.post("/query", json={"collection": collection, "query": "Where was Marie Curie born?"}).json()
    sentence = http.get("/passages/curie", params={"collection": collection}).json()["sentences"][0]["sentence_id"]
    body = {
        "collection": collection,
        "query_id": query["query_id"],
        "supporting": [sentence],
        "judge": judge,
        "wait": wait,
    }
    found: dict[str, Any] = http.post("/feedback", json=body, headers={"idempotency-key": str(uuid4())}).json()
    return found


def test_a_verdict_is_revoked_once(http: TestClient, application: Application, curie: str) -> None:
    receipt = judge(http, curie)
    assert (receipt["status"], receipt["revoked_at"]) == ("applied", None)
    path, where = f"/feedback/{receipt['feedback_id']}", {"collection": curie}

    revoked = http.delete(path, params=where)
    assert revoked.status_code == 200
    assert (revoked.json()["status"], revoked.json()["changes"]) == ("revoked", [])
    assert revoked.json()["revoked_at"] >= revoked.json()["applied_at"]
    assert revoked.json()["verdict"]["supports"]
    assert not any(undo.list_learned(application, curie).values())

    assert http.delete(path, params=where).json() == revoked.json()
    assert http.get(path, params=where).json() == revoked.json()
    listed = http.get("/feedback", params={**where, "status": "revoked"}).json()["feedback"]
    assert [event["feedback_id"] for event in listed] == [receipt["feedback_id"]]


def test_a_judge_is_revoked_by_a_job(http: TestClient, application: Application, curie: str) -> None:
    kept, *taken = (judge(http, curie, name)["feedback_id"] for name in ("careful", "careless", "careless"))
    waiting = judge(http, curie, "careless", wait=False)["feedback_id"]
    body = {"collection": curie, "judge": "careless", "from": "2020-01-01T00:00:00+02:00"}
    headers = {"idempotency-key": "once"}
    accepted = http.post("/feedback/revoke", json=body, headers=headers)
    assert accepted.status_code == 202
    assert accepted.headers["location"] == accepted.json()["status_url"]
    assert http.post("/feedback/revoke", json=body, headers=headers).json() == accepted.json()
    job = http.get(accepted.json()["status_url"]).json()
    assert (job["status"], job["received"], job["updated"], job["waiting"]) == ("queued", 3, 1, 2)
    assert job["revocation"] == {"judge": "careless", "from": "2019-12-31T22:00:00Z", "to": None}
    assert state.event_statuses(application, curie)[waiting] == "revoked"

    assert application.jobs.runner.run_ready() >= 1  # other tests' jobs may wait as well
    job = http.get(accepted.json()["status_url"]).json()
    assert (job["status"], job["updated"], job["waiting"], job["error"]) == ("succeeded", 3, 0, None)
    statuses = state.event_statuses(application, curie)
    assert statuses == {kept: "applied", **dict.fromkeys([*taken, waiting], "revoked")}
    undo.assert_verified(application, curie)
