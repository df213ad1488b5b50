"""Past moments over HTTP: a job brings one back, and what names none is refused."""

from datetime import UTC, datetime
from typing import Any

import pytest

from engram.composition.container import Application
from tests.api.conftest import Counts
from tests.api.operations import assert_problem
from tests.support import state, undo
from tests.support.strict_client import TestClient


def test_a_past_moment_is_brought_back_by_a_job(http: TestClient, application: Application, curie: str) -> None:
    undo.apply(application, curie, undo.stream(application, curie, 6, seed=61), 6)
    until = datetime.now(UTC).isoformat()
    then = undo.list_learned(application, curie)
    application.learning.revocation.revoke(
        application.auth.access.scope(curie), state.list_applied_order(application, curie)[0]
    )
    headers = {"idempotency-key": "once"}
    asked = http.post(f"/collections/{curie}/replay", json={"until": until}, headers=headers)
    assert asked.status_code == 202
    assert asked.headers["location"] == asked.json()["status_url"]
    again = http.post(f"/collections/{curie}/replay", json={"until": until}, headers=headers)
    assert again.json() == asked.json()
    name = http.get(asked.json()["status_url"]).json()["replay"]["into"]

    application.jobs.runner.run_ready()

    job = http.get(asked.json()["status_url"]).json()
    assert (job["status"], job["error"]) == ("succeeded", None)
    assert (job["result"]["collection"], job["result"]["of"], job["result"]["events"]) == (name, curie, 6)
    assert datetime.fromisoformat(job["result"]["until"]).isoformat() == until
    assert http.get(f"/collections/{name}").json()["past"]["of"] == curie
    made = undo.list_learned(application, name)
    assert {table: len(rows) for table, rows in made.items()} == {table: len(rows) for table, rows in then.items()}
    taken = http.post(f"/collections/{curie}/replay", json={"until": until, "into": name})
    assert taken.status_code == 409
    assert_problem(taken)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"until": "yesterday"},
        {"until": "2026-05-01T12:00:00"},
        {"until": 5},
        {"until": "2999-01-01T00:00:00Z"},
        {"until": "2026-05-01T12:00:00Z", "into": "not a name"},
        {"until": "2026-05-01T12:00:00Z", "of": 1},
    ],
)
def test_invalid_moment_is_refused_without_changes(body: Any, http: TestClient, curie: str, counts: Counts) -> None:
    before = counts()
    refused = http.post(f"/collections/{curie}/replay", json=body)
    assert refused.status_code == 422
    assert_problem(refused)
    assert counts() == before
