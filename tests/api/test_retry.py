"""Retrying parked verdicts over HTTP."""

import pytest

from engram.composition.container import Application
from tests.api.operations import assert_problem
from tests.support import state
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"


@pytest.fixture
def parked(application: Application, curie: str) -> list[int]:
    """Three verdicts that were given up, the last of another judge, and one that waits."""
    query_id = state.add_episode(application, curie, QUESTION, [])
    events = [
        state.judge(application, curie, query_id, judge=judge).event.id for judge in ("a", "a", "b", "waiting")
    ]
    with application.database.write() as writer:
        writer.execute(
            """
            UPDATE feedback_event SET status = 'parked', attempts = 5, error = 'it broke' WHERE id = ANY(%(ids)s)
            """,
            {"ids": events[:3]},
        )
    return events


def test_parked_verdict_is_retried(
    http: TestClient, application: Application, curie: str, parked: list[int]
) -> None:
    path, where = f"/feedback/{parked[0]}/retry", {"collection": curie}
    retried = http.post(path, params=where)
    assert retried.status_code == 202
    assert (retried.json()["feedback_id"], retried.json()["status"]) == (parked[0], "pending")
    assert retried.json()["error"] == "it broke"
    row = next(row for row in state.rows(application, curie, "feedback_event") if row["id"] == parked[0])
    assert (row["status"], row["attempts"]) == ("pending", 0)
    assert state.event_statuses(application, curie)[parked[1]] == "parked"

    again = http.post(path, params=where)
    assert again.status_code == 409
    assert_problem(again)
    assert "pending" in again.json()["detail"]
    application.learning.learner.apply(state.collection_id(application, curie), [parked[0]])
    read = http.get(f"/feedback/{parked[0]}", params=where).json()
    assert (read["status"], read["error"]) == ("applied", None)
    assert "applied" in http.post(path, params=where).json()["detail"]


def test_all_of_a_judge_or_of_a_collection_are_retried(
    http: TestClient, application: Application, curie: str, parked: list[int]
) -> None:
    assert http.post("/feedback/retry", json={"collection": curie, "judge": "nobody"}).json()["retried"] == 0
    one = http.post("/feedback/retry", json={"collection": curie, "judge": "b"})
    assert (one.status_code, one.json()) == (200, {"collection": curie, "retried": 1})
    assert state.event_statuses(application, curie)[parked[2]] == "pending"
    assert http.post("/feedback/retry", json={"collection": curie}).json()["retried"] == 2
    assert set(state.event_statuses(application, curie).values()) == {"pending"}


def test_invalid_retries_are_refused(http: TestClient, curie: str, parked: list[int]) -> None:
    for path, where, status in (
        (f"/feedback/{parked[3]}/retry", curie, 409),
        ("/feedback/1/retry", curie, 404),
        (f"/feedback/{parked[0]}/retry", "nowhere", 404),
        ("/feedback/revoke/retry", curie, 404),
        ("/feedback/x/retry", curie, 422),
    ):
        refused = http.post(path, params={"collection": where})
        assert refused.status_code == status, path
        assert_problem(refused)
    assert http.post("/feedback/retry", json={"collection": "nowhere"}).status_code == 404
    assert http.post("/feedback/retry", json={"collection": curie, "all": True}).status_code == 422
