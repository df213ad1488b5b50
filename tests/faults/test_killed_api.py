"""An API killed with SIGKILL in the middle of a write: sent again with the same key, it is done once."""

import json
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import Any

import httpx
import pytest

from engram.api.corpus.passage_bodies import LINES_PER_WRITE
from engram.composition.container import Application
from tests.conftest import CURIE
from tests.faults.conftest import Start
from tests.support import state, undo
from tests.support.campaign import leave_to_campaign
from tests.support.orphans import orphans
from tests.support.processes import PATIENCE_SECONDS, eventually
from tests.support.strict_client import TestClient

KEY = {"idempotency-key": "once"}
NDJSON = {**KEY, "content-type": "application/x-ndjson"}
BODY = b"\n".join(json.dumps(passage).encode() for passage in CURIE)
# Lines that are refused count like others, and need no encoder.
PADDING = b'{"id": 1}\n' * (LINES_PER_WRITE - 1)
# Where it dies, and whether the job was released by then.
INGEST_STEPS = {
    "with the job opened": (("engram.storage.corpus.staged_lines:add", "before"), False),
    "with lines staged": (("engram.storage.jobs.jobs:release", "before"), False),
    "released and not committed": (("engram.storage.jobs.jobs:release", "after"), False),
    "accepted and not answered": (("engram.services.corpus.passage_intake:PassageReception.finish", "after"), True),
}
ORDINARY = ("with lines staged", "accepted and not answered")
# Where it dies, and what the event is by then.
FEEDBACK_STEPS = {
    "before it is stored": (("engram.storage.feedback_log.event_intake:append", "before"), False, None),
    "stored and neither answered nor announced": (
        ("engram.storage.feedback_log.event_intake:append", "after"),
        False,
        "pending",
    ),
    "while it applies the verdict": (
        ("engram.storage.feedback_log.feedback_events:mark_applied", "after"),
        True,
        "pending",
    ),
    "applied and not answered": (
        ("engram.services.verdict.learn:VerdictLearner.apply", "after"),
        True,
        "applied",
    ),
}


def jobs(application: Application, collection: str) -> list[dict[str, Any]]:
    return state.rows(application, collection, "job")


def cut_off(url: str, path: str, **request: Any) -> None:
    """Send a request whose answer never comes."""
    with pytest.raises(httpx.TransportError):
        httpx.post(f"{url}{path}", timeout=PATIENCE_SECONDS, trust_env=False, **request)


def send_again(application: Application, client: TestClient, collection: str, body: bytes = BODY) -> str:
    """Send the passages twice more; the one job that ingested them."""
    answers = [client.post(f"/passages?collection={collection}", content=body, headers=NDJSON) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert answers[0].json() == answers[1].json()
    application.jobs.runner.run_ready()
    job = client.get(answers[0].json()["status_url"]).json()
    assert (job["status"], job["created"], job["waiting"]) == ("succeeded", len(CURIE), 0)
    assert state.counts(application, collection) == state.true_counts(application, collection)
    assert [row["id"] for row in jobs(application, collection) if row["status"] != "receiving"] == [job["job_id"]]
    return str(job["job_id"])


def assert_abandoned(application: Application, collection: str) -> None:
    """The jobs of the dead are let go once they have been silent for long enough, and nothing of them is left."""
    with application.database.write() as writer:
        writer.execute(
            """
            UPDATE job SET updated_at = now() - interval '11 minutes'
            WHERE collection_id = %(c)s AND status = 'receiving'
            """,
            {"c": state.collection_id(application, collection)},
        )
    application.corpus.ingest.discard_abandoned()
    assert {row["status"] for row in jobs(application, collection)} == {"succeeded"}
    assert state.rows(application, collection, "ingest_line") == []
    assert orphans(application, collection) == {}


@pytest.mark.parametrize("step", leave_to_campaign(INGEST_STEPS, ordinary=ORDINARY))
def test_killed_while_it_takes_passages(
    application: Application, client: TestClient, collection: str, start: Start, step: str
) -> None:
    where, accepted = INGEST_STEPS[step]
    dying = start("serve", *where).ready()
    cut_off(dying.url, f"/passages?collection={collection}", content=BODY, headers=NDJSON)
    assert dying.wait_for_end() == -signal.SIGKILL
    left = jobs(application, collection)
    assert [row["status"] for row in left] == ["queued" if accepted else "receiving"]

    job = send_again(application, client, collection)

    assert (job == left[0]["id"]) == accepted
    assert_abandoned(application, collection)


def test_killed_half_way_through_a_stream(
    application: Application, client: TestClient, collection: str, start: Start
) -> None:
    staged = threading.Event()

    def body() -> Iterator[bytes]:
        yield BODY.split(b"\n")[0] + b"\n" + PADDING
        staged.wait(PATIENCE_SECONDS)
        yield b"\n".join(BODY.split(b"\n")[1:])

    api = start("serve").ready()
    with ThreadPoolExecutor(1) as pool:
        sender = pool.submit(cut_off, api.url, f"/passages?collection={collection}", content=body(), headers=NDJSON)
        try:
            eventually(lambda: "receiving" in list_statuses(application, collection))
            eventually(lambda: jobs(application, collection)[0]["received"] == LINES_PER_WRITE)
            api.kill()
        finally:
            staged.set()
        sender.result()
    application.jobs.runner.run_ready()
    assert [row["status"] for row in jobs(application, collection)] == ["receiving"]
    assert state.true_counts(application, collection) == (0, 0, 0)

    send_again(application, client, collection, BODY.split(b"\n")[0] + b"\n" + PADDING + BODY.split(b"\n", 1)[1])
    assert_abandoned(application, collection)


def list_statuses(application: Application, collection: str) -> list[str]:
    with application.database.read() as reader:
        found = reader.rows(
            """
            SELECT status FROM job JOIN collection c ON c.id = job.collection_id WHERE c.name = %(name)s
            """,
            {"name": collection},
        )
    return [row[0] for row in found]


@pytest.mark.parametrize(
    ("step", "named"), list(zip(FEEDBACK_STEPS, cycle(["by its id", "by its words"]), strict=False))
)
def test_killed_while_it_takes_a_verdict(
    application: Application, client: TestClient, curie: str, start: Start, step: str, named: str
) -> None:
    where, wait, status = FEEDBACK_STEPS[step]
    asked = client.post("/query", json={"collection": curie, "query": "Where was Marie Curie born?"}).json()
    words = "Marie Curie was born in Warsaw in 1867."
    (sentence,) = (row["id"] for row in state.rows(application, curie, "sentence") if row["text"] == words)
    body = {
        "collection": curie,
        "query_id": asked["query_id"],
        "supporting": [sentence if named == "by its id" else {"passage_id": "curie", "text": words}],
    }
    dying = start("serve", *where).ready()
    cut_off(dying.url, "/feedback", json=body | {"wait": wait}, headers=KEY)
    assert dying.wait_for_end() == -signal.SIGKILL
    assert list(state.event_statuses(application, curie).values()) == ([] if status is None else [status])
    assert orphans(application, curie) == {}

    answers = [client.post("/feedback", json=body | {"wait": True}, headers=KEY) for _ in range(2)]

    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()
    assert answers[0].json()["changes"]
    (event,) = state.rows(application, curie, "feedback_event")
    assert (event["status"], event["attempts"]) == ("applied", 0)
    assert {row["update_count"] for row in state.rows(application, curie, "sentence_memory")} == {1}
    assert orphans(application, curie) == {}
    undo.assert_verified(application, curie)
