"""A verdict that cannot be applied is parked, holds nobody back, and is retried once the cause is mended."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
import structlog

from engram.composition.container import Application
from tests.faults.conftest import Working
from tests.support import state, undo
from tests.support.constants import APPLY_ATTEMPTS, SWEEP_SECONDS
from tests.support.orphans import orphans
from tests.support.processes import eventually
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"
MOST_TRIES = 3
REASON = "division by zero, and that is nobody's fault but the verdict's"
PUBLIC_REASON = "the log says more"
Poison = Callable[[str], None]


@pytest.fixture
def poison(application: Application, bystander: "psycopg.Connection[Any]") -> Iterator[Poison]:
    """Makes the verdicts of a judge impossible to apply, until the cause is mended."""
    bystander.execute(
        f"""
        CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF (SELECT judge FROM feedback_event e
                WHERE e.collection_id = NEW.collection_id AND e.id = NEW.event_id) = TG_ARGV[0] THEN
                RAISE EXCEPTION '{REASON.replace("'", "''")}' USING ERRCODE = 'division_by_zero';
            END IF;
            RETURN NEW;
        END $$
        """
    )

    def make(judge: str) -> None:
        bystander.execute(
            f"CREATE TRIGGER poison BEFORE INSERT ON memory_audit FOR EACH ROW EXECUTE FUNCTION poison('{judge}')"
        )

    yield make
    bystander.execute("DROP FUNCTION poison CASCADE")


def drop_trigger(bystander: "psycopg.Connection[Any]") -> None:
    bystander.execute("DROP TRIGGER poison ON memory_audit")


def add_verdicts(application: Application, collection: str, judges: list[str]) -> list[int]:
    """Verdicts of these judges on the same question and the same sentences."""
    sentences = state.list_sentence_ids(application, collection)
    query_id = state.add_episode(application, collection, QUESTION, sentences[:4])
    return [state.judge(application, collection, query_id, sentences[:2], judge=judge).event.id for judge in judges]


def test_poisoned_verdict_blocks_no_others_and_is_applied_after_repair(
    application: Application,
    client: TestClient,
    curie: str,
    poison: Poison,
    working: Working,
    bystander: "psycopg.Connection[Any]",
) -> None:
    poison("careless")
    events = add_verdicts(application, curie, ["careful", "careless", "careful", "careless", "careful"])
    sound, poisoned = events[::2], events[1::2]
    with working({APPLY_ATTEMPTS: MOST_TRIES}), structlog.testing.capture_logs() as said:
        eventually(lambda: "pending" not in state.event_statuses(application, curie).values())
        assert state.event_statuses(application, curie) == dict.fromkeys(sound, "applied") | dict.fromkeys(
            poisoned, "parked"
        )
        assert [
            (line["event_id"], line["collection_id"], line["log_level"], PUBLIC_REASON in line["reason"])
            for line in said
            if line["event"] == "feedback parked"
        ] == [(event, state.collection_id(application, curie), "error", True) for event in poisoned]

        listed = client.get("/feedback", params={"collection": curie, "status": "parked"}).json()["feedback"]
        assert [event["feedback_id"] for event in listed] == poisoned
        assert all(PUBLIC_REASON in event["error"] and REASON not in event["error"] for event in listed)
        assert orphans(application, curie) == {}
        undo.assert_verified(application, curie)

        # Not mended yet: it is tried as often again, and parked again.
        again = client.post(f"/feedback/{poisoned[0]}/retry", params={"collection": curie})
        assert (again.status_code, again.json()["status"]) == (202, "pending")
        eventually(lambda: state.event_statuses(application, curie)[poisoned[0]] == "parked")
        (row,) = [row for row in state.rows(application, curie, "feedback_event") if row["id"] == poisoned[0]]
        assert row["attempts"] == MOST_TRIES

        drop_trigger(bystander)
        answer = client.post("/feedback/retry", json={"collection": curie})
        assert answer.json() == {"collection": curie, "retried": 2}
        eventually(lambda: set(state.event_statuses(application, curie).values()) == {"applied"})

    assert state.list_applied_order(application, curie)[:3] == sound
    rows = state.rows(application, curie, "feedback_event")
    assert [(row["attempts"], row["error"]) for row in rows] == [(0, None)] * len(events)
    assert orphans(application, curie) == {}
    undo.assert_verified(application, curie)


def test_a_retry_wakes_a_worker(
    application: Application,
    curie: str,
    poison: Poison,
    working: Working,
    bystander: "psycopg.Connection[Any]",
) -> None:
    poison("careless")
    (event,) = add_verdicts(application, curie, ["careless"])
    target = state.collection_id(application, curie)
    while state.event_statuses(application, curie)[event] == "pending":
        assert application.learning.learner.apply(target, [event]) == 0
    drop_trigger(bystander)
    with working({SWEEP_SECONDS: 3600.0}):  # the first sweep comes at once, and must be over
        sweeps = state.add_episode(application, curie, QUESTION, [])
        swept = state.judge(application, curie, sweeps).event.id
        eventually(lambda: state.event_statuses(application, curie)[swept] == "applied")
        application.learning.parked.retry(application.auth.access.scope(curie), event)
        eventually(lambda: state.event_statuses(application, curie)[event] == "applied")


def test_a_verdict_revoked_while_it_is_parked_is_not_retried(
    application: Application, client: TestClient, curie: str, poison: Poison
) -> None:
    poison("careless")
    first, second = add_verdicts(application, curie, ["careless", "careless"])
    target = state.collection_id(application, curie)
    while "pending" in state.event_statuses(application, curie).values():
        assert application.learning.learner.apply(target, [first, second]) == 0
    application.learning.revocation.revoke(application.auth.access.scope(curie), first)
    refused = client.post(f"/feedback/{first}/retry", params={"collection": curie})
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:engram:problem:conflict")
    assert application.learning.parked.retry_all(application.auth.access.scope(curie)) == 1
    assert state.event_statuses(application, curie) == {first: "revoked", second: "pending"}
