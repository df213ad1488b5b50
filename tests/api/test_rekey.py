"""Re-keying over HTTP: a job like any other, one at a time."""

from typing import Any
from uuid import UUID

import pytest

from engram.composition.container import Application
from tests.api.conftest import Counts
from tests.api.operations import assert_problem
from tests.support.strict_client import TestClient


def rekey(http: TestClient, name: str, building: Any, key: str | None = None) -> Any:
    headers = {} if key is None else {"idempotency-key": key}
    return http.post(f"/collections/{name}/rekey", json={"key_building": building}, headers=headers)


def test_a_job_is_accepted_followed_and_done(http: TestClient, application: Application, curie: str) -> None:
    assert http.get(f"/collections/{curie}").json()["key_building"] == "full"
    accepted = rekey(http, curie, "title")
    assert accepted.status_code == 202
    job_id = UUID(accepted.json()["job_id"])
    status_url, cancel_url = (f"/jobs/{job_id}{action}?collection={curie}" for action in ("", "/cancel"))
    job = {"job_id": str(job_id), "collection": curie, "status_url": status_url, "cancel_url": cancel_url}
    assert accepted.json() == job
    assert accepted.headers["location"] == status_url
    waiting = http.get(status_url).json()
    assert (waiting["status"], waiting["key_building"], waiting["received"]) == ("queued", "title", 0)

    application.jobs.runner.run_ready()

    done = http.get(status_url).json()
    assert (done["status"], done["received"], done["updated"], done["waiting"]) == ("succeeded", 5, 5, 0)
    assert (done["errors"], done["error"]) == ([], None)
    assert http.get(f"/collections/{curie}").json()["key_building"] == "title"
    listed = http.get("/collections", params={"limit": 1_000}).json()["collections"]
    assert {item["name"]: item["key_building"] for item in listed}[curie] == "title"


@pytest.mark.parametrize("building", ["title", "abstract"])
def test_while_a_job_is_open_another_is_refused(
    building: str, http: TestClient, rekeying: str, application: Application, counts: Counts
) -> None:
    before = counts()
    refused = rekey(http, rekeying, building, "refused")
    assert_problem(refused)
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:engram:problem:conflict")
    job = http.get(f"/jobs/{refused.json()['job_id']}", params={"collection": rekeying}).json()
    assert (job["status"], job["key_building"]) == ("queued", "abstract")
    assert counts() == before

    application.jobs.runner.run_ready()
    assert rekey(http, rekeying, building, "refused").status_code == 202
