"""Jobs over HTTP: what they are about, where they stand in the queue, pages of them, and how one is ended."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from tests.api.conftest import Counts
from tests.api.operations import assert_problem
from tests.conftest import CURIE
from tests.support import state
from tests.support.strict_client import TestClient

NEW_PASSAGE = {"id": "new", "text": "It is new."}


def list_jobs(http: TestClient, collection: str, **page: int) -> Any:
    return http.get(f"/collections/{collection}/jobs", params=page).json()


def cancel(http: TestClient, collection: str, job: object) -> Any:
    return http.post(f"/jobs/{job}/cancel", params={"collection": collection})


@pytest.mark.wing("history")
def test_jobs_of_all_kinds_are_listed_the_latest_first(
    http: TestClient, application: Application, curie: str
) -> None:
    until = datetime.now(UTC).isoformat()
    http.post(f"/collections/{curie}/rekey", json={"key_building": "title"})
    http.post("/feedback/revoke", json={"collection": curie, "judge": "careless"})
    http.post(f"/collections/{curie}/replay", json={"until": until, "into": f"{curie}-past"})
    state.stage_passages(application, curie, NEW_PASSAGE)

    found = list_jobs(http, curie)
    assert (found["collection"], found["next_before"]) == (curie, None)
    assert [(job["kind"], job["status"], job["ahead"]) for job in found["jobs"]] == [
        ("ingest", "queued", 1),  # the re-key job comes first
        ("replay", "queued", 0),
        ("revocation", "queued", 0),
        ("rekey", "queued", 0),
        ("ingest", "succeeded", None),
    ]
    new, replay, revocation, rekey, old = found["jobs"]
    assert (rekey["key_building"], revocation["revocation"]["judge"]) == ("title", "careless")
    assert (replay["replay"]["into"], datetime.fromisoformat(replay["replay"]["until"]).isoformat()) == (
        f"{curie}-past", until,
    )  # fmt: skip
    assert [new[name] for name in ("key_building", "revocation", "replay", "result")] == [None] * 4
    assert (old["received"], old["created"], old["waiting"]) == (len(CURIE), len(CURIE), 0)
    alone = http.get(f"/jobs/{new['job_id']}", params={"collection": curie}).json()
    assert {name: alone[name] for name in new} == new

    application.jobs.runner.run_ready()
    assert {job["status"] for job in list_jobs(http, curie)["jobs"]} == {"succeeded"}


def test_waiting_job_is_cancelled_at_once(http: TestClient, application: Application, curie: str) -> None:
    job = state.stage_passages(application, curie, NEW_PASSAGE)
    listed = {one["job_id"]: one["cancel_url"] for one in list_jobs(http, curie)["jobs"]}
    assert [url for one, url in listed.items() if one != str(job)] == [None], "the first ingest is over"
    done = http.post(listed[str(job)])
    assert (done.status_code, done.json()["status"], done.json()["waiting"]) == (200, "cancelled", 1)
    assert done.json()["cancel_url"] is None
    assert done.json()["cancel_requested_at"] == done.json()["finished_at"]
    again = cancel(http, curie, job)
    assert (again.status_code, again.json()) == (200, done.json())
    application.jobs.runner.run_ready()
    assert http.get("/passages/new", params={"collection": curie}).status_code == 404


def test_running_job_is_asked_to_end(http: TestClient, application: Application, curie: str) -> None:
    job = state.stage_passages(application, curie, NEW_PASSAGE)
    runner = application.jobs.runner
    running = runner.claim(uuid4(), runner.lanes, state.collection_id(application, curie))
    assert running is not None
    asked = cancel(http, curie, job)
    assert (asked.status_code, asked.json()["status"], asked.json()["finished_at"]) == (202, "running", None)
    assert asked.json()["cancel_requested_at"] is not None
    assert asked.json()["cancel_url"] is None, "it was asked for already"

    assert runner.carry_out(running, lambda: False)
    shown = http.get(f"/jobs/{job}", params={"collection": curie}).json()
    assert shown["status"] == "cancelled"


def test_refused_cancellation_changes_nothing(
    http: TestClient, application: Application, finished: tuple[str, Any], counts: Counts
) -> None:
    before, (collection, over) = counts(), finished
    receiving = application.corpus.ingest.receive(application.auth.access.prepare_opening(collection))
    receiving.add([(1, {"id": "a", "text": "Bees fly."})], [])
    for job, status in ((over, 409), (receiving.job_id, 409), (uuid4(), 404)):
        refused = cancel(http, collection, job)
        assert refused.status_code == status
        assert_problem(refused)
    receiving.abort()
    assert counts() == before
