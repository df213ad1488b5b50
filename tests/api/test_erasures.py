"""Erasures over HTTP: what they remove, their receipts, and what of the request itself stays."""

from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi.testclient import TestClient

from engram.composition.container import Application
from tests.services.erasure.test_erasure_service import find_anywhere

JUDGE = "brunhilde.quux"


@pytest.fixture
def judged(http: TestClient, curie: str) -> str:
    """The id of an answer that a judge judged, among the words that a search would find."""
    asked = {"collection": curie, "query": f"Where did {curie[::-1]} meet Marie Curie?"}
    answer = http.post("/query", json=asked).json()
    body = {
        "collection": curie,
        "query_id": answer["query_id"],
        "supporting_passages": ["curie"],
        "judge": JUDGE,
        "wait": True,
    }
    http.post("/feedback", json=body, headers={"idempotency-key": "erasures-1"}).raise_for_status()
    http.put(f"/collections/{curie}/judges/{JUDGE}", json={"daily_share": 0.5}).raise_for_status()
    http.post("/feedback/revoke", json={"collection": curie, "judge": f"{JUDGE}.no", "to": "2020-01-01T00:00:00Z"})
    query: str = answer["query_id"]
    return query


def finish(application: Application, http: TestClient, accepted: httpx.Response) -> dict[str, Any]:
    assert accepted.status_code == 202, accepted.text
    application.jobs.runner.run_ready()
    job: dict[str, Any] = http.get(accepted.json()["status_url"]).json()
    assert (job["status"], job["error"]) == ("succeeded", None)
    return job


def test_a_judge_goes_with_settings_and_acts(
    application: Application, http: TestClient, curie: str, judged: str
) -> None:
    assert set(find_anywhere(application.database, JUDGE)) >= {"feedback_event", "judge"}
    job = finish(application, http, http.delete(f"/collections/{curie}/judges/{JUDGE}"))
    assert job["result"]["removed"]["feedback_event"] == 1
    found = find_anywhere(application.database, JUDGE)
    assert set(found) <= {"job"}  # the revocation of another judge, whose name begins alike
    assert http.get(f"/queries/{judged}").json()["judged"] == 0
    [receipt] = http.get(f"/collections/{curie}/erasures").json()["erasures"]
    assert (receipt["id"], receipt["kind"], receipt["queries"]) == (job["job_id"], "judge", [])
    assert JUDGE not in str(receipt)


@pytest.mark.parametrize("name", ["collections", "judges", "collection", "removed"])
def test_acts_of_others_stay_where_a_route_or_a_field_has_a_word_like_the_name(
    application: Application, http: TestClient, curie: str, name: str
) -> None:
    other = "zebra"
    job = finish(application, http, http.delete(f"/collections/{curie}/judges/ant"))
    for judge in (name, other):
        http.put(f"/collections/{curie}/judges/{judge}", json={"daily_share": 0.5}).raise_for_status()
    finish(application, http, http.delete(f"/collections/{curie}/judges/{name}"))
    assert http.get(f"/jobs/{job['job_id']}", params={"collection": curie}).json()["result"] == job["result"]
    targets = [one["target"] for one in http.get("/audit", params={"limit": 100}).json()["entries"]]
    assert f"/collections/{curie}/judges/{other}" in targets
    assert f"/collections/{curie}/judges/{name}" not in targets


@pytest.mark.parametrize("name", ["query", "of", "scopes", "cancel", "sessions", "ant"])
def test_acts_that_have_a_word_of_ours_stay(
    application: Application, http: TestClient, curie: str, name: str
) -> None:
    for action, target in (("create key", "zebra of local: query judge"), ("clear wing", "sessions")):
        with application.maintenance.audit_log.on_command(action, target):
            pass
    http.post(f"/jobs/{UUID(int=1)}/cancel", params={"collection": curie})
    http.post("/access/keys", json={"name": "zebra", "scopes": {"*": ["query"]}, "principals": ["user:ant"]})

    def list_acts() -> list[tuple[str, str]]:
        entries = http.get("/audit", params={"limit": 4, "before": last}).json()["entries"]
        return [(entry["target"], entry["body"]) for entry in entries]

    last = http.get("/audit", params={"limit": 1}).json()["entries"][0]["id"] + 1
    before = list_acts()
    finish(application, http, http.delete(f"/collections/{curie}/judges/{name}"))
    kept = [after == act for after, act in zip(list_acts(), before, strict=True)]
    assert kept == [name != "ant", True, True, True]


def test_words_of_ours_in_jobs_name_nobody(application: Application, http: TestClient, curie: str) -> None:
    rekeyed = http.post(f"/collections/{curie}/rekey", json={"key_building": "title"})
    job = finish(application, http, rekeyed)
    finish(application, http, http.delete(f"/collections/{curie}/judges/title"))
    assert http.get(rekeyed.json()["status_url"]).json() == job


@pytest.mark.parametrize("kind", ["rekey", "revocation", "replay"])
def test_a_job_of_which_a_person_was_erased_is_shown_without_what_it_was_about(
    application: Application, http: TestClient, curie: str, kind: str
) -> None:
    done = http.post(f"/collections/{curie}/rekey", json={"key_building": "title"})
    finish(application, http, done)
    with application.database.write() as writer:
        erased = "UPDATE job SET kind = %(kind)s, payload = '{\"erased\": true}' WHERE id = %(id)s"
        writer.execute(erased, {"kind": kind, "id": done.json()["job_id"]})
    shown = http.get(done.json()["status_url"])
    assert shown.status_code == 200, shown.text
    assert [shown.json()[name] for name in ("key_building", "revocation", "replay")] == [None] * 3


def test_a_query_goes_once_under_a_key(application: Application, http: TestClient, curie: str, judged: str) -> None:
    headers = {"idempotency-key": "erasures-2"}
    first = http.delete(f"/queries/{judged}", params={"collection": curie}, headers=headers)
    finish(application, http, first)
    assert http.get(f"/queries/{judged}").status_code == 404
    assert find_anywhere(application.database, curie[::-1]) == {}
    again = http.delete(f"/queries/{judged}", params={"collection": curie}, headers=headers)
    assert again.json() == first.json()


def test_a_span_needs_a_bound(application: Application, http: TestClient, curie: str, judged: str) -> None:
    assert http.delete("/queries", params={"collection": curie}).status_code == 422
    where = {"collection": curie, "to": "2020-01-01T00:00:00Z"}
    job = finish(application, http, http.delete("/queries", params=where))
    assert "episode" not in job["result"]["removed"]
    assert http.get(f"/queries/{judged}").status_code == 200
    finish(application, http, http.delete("/queries", params=where | {"to": "2100-01-01T00:00:00Z"}))
    assert http.get(f"/queries/{judged}").status_code == 404


def test_a_principal_with_a_live_key_is_a_conflict(application: Application, http: TestClient, curie: str) -> None:
    name = f"gudrun.{curie[-8:]}"
    made = http.post("/access/keys", json={"name": name, "scopes": {"*": ["query"]}}).json()
    where = f"/collections/{curie}/principals/{name}"
    refused = http.delete(where)
    assert refused.status_code == 409
    assert "revoke it first" in refused.json()["detail"]
    http.delete(f"/access/keys/{made['key_id']}").raise_for_status()
    job = finish(application, http, http.delete(where))
    assert job["result"]["removed"]["access_key"] == 1
    assert find_anywhere(application.database, name) == {}
