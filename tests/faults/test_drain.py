"""Processes told to end: what is in hand is finished, nothing new is taken, and what was accepted is not lost."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import httpx
import psycopg

from engram.composition.container import Application, Servers
from tests.api.operations import assert_problem
from tests.conftest import CURIE
from tests.faults.conftest import QUESTION, Start, Working, count_paused, pause_applying, post_verdict
from tests.faults.test_killed_api import BODY, NDJSON, PADDING, list_statuses
from tests.support import state, undo
from tests.support.constants import INGEST_BATCH, STATEMENT_TIMEOUT
from tests.support.orphans import orphans
from tests.support.processes import PATIENCE_SECONDS, Process, eventually


def client_of(api: Process) -> httpx.Client:
    return httpx.Client(base_url=api.url, timeout=PATIENCE_SECONDS, trust_env=False)


def refuses(api: Process) -> bool:
    """Whether new connections are."""
    try:
        httpx.get(f"{api.url}/healthz", trust_env=False, timeout=PATIENCE_SECONDS)
    except httpx.TransportError:
        return True
    return False


def test_terminated_api_finishes_open_requests_and_accepts_no_more(
    application: Application, places: Servers, curie: str, start: Start, working: Working
) -> None:
    ending, arriving = threading.Event(), f"{curie}-arriving"
    first, rest = BODY.split(b"\n", 1)

    def body() -> Iterator[bytes]:
        yield first + b"\n" + PADDING
        ending.wait(PATIENCE_SECONDS)
        yield rest

    api = start("serve").ready()
    with client_of(api) as http, ThreadPoolExecutor(2) as pool:
        with pause_applying(places):
            verdict = pool.submit(post_verdict, http, curie, "waited", wait=True)
            eventually(lambda: count_paused(application) == 1)
            stream = pool.submit(http.post, f"/passages?collection={arriving}", content=body(), headers=NDJSON)
            eventually(lambda: "receiving" in list_statuses(application, arriving))
            api.terminate()
            eventually(lambda: refuses(api))
            assert api.running
            assert not verdict.done()
        ending.set()
        assert (verdict.result().status_code, verdict.result().json()["status"]) == (200, "applied")
        assert verdict.result().json()["changes"]
        assert stream.result().status_code == 202
    assert api.wait_for_end() == 0, api.output
    assert "Traceback" not in api.output

    assert list_statuses(application, arriving) == ["queued"]
    with working():
        eventually(lambda: list_statuses(application, arriving) == ["succeeded"])
    assert state.counts(application, arriving)[0] == len(CURIE)
    undo.assert_verified(application, curie)


def test_terminated_api_is_unready_and_serves_during_the_shutdown_delay(curie: str, start: Start) -> None:
    api = start("serve", ENGRAM_SHUTDOWN_DELAY_SECONDS="3600").ready()
    with client_of(api) as http:
        assert http.get("/readyz").status_code == 200
        api.terminate()
        eventually(lambda: http.get("/readyz").status_code == 503)
        answer = http.get("/readyz")
        assert_problem(answer)
        assert int(answer.headers["retry-after"]) > 0
        assert http.get("/healthz").status_code == 200
        assert http.post("/query", json={"collection": curie, "query": QUESTION}).status_code == 200
    with client_of(api) as another:
        assert another.get("/healthz").status_code == 200
    api.terminate()
    assert api.wait_for_end() == 0, api.output


def test_a_request_that_outlives_the_grace_is_cut_off_and_can_be_repeated(
    application: Application, places: Servers, curie: str, start: Start, working: Working
) -> None:
    # Its statement would wait for hours.
    api = start("serve", ENGRAM_SHUTDOWN_GRACE_SECONDS="1", **{STATEMENT_TIMEOUT: "36000"}).ready()
    with client_of(api) as http, ThreadPoolExecutor(1) as pool:
        with pause_applying(places):
            verdict = pool.submit(post_verdict, http, curie, "waited", wait=True)
            eventually(lambda: count_paused(application) == 1)
            api.terminate()
            answer = verdict.result()
            assert answer.status_code == 503, answer.text
            assert_problem(answer)
            assert int(answer.headers["retry-after"]) > 0
            assert api.wait_for_end() == 0, api.output
        eventually(lambda: count_paused(application) == 0)
    assert list(state.event_statuses(application, curie).values()) == ["pending"]
    assert orphans(application, curie) == {}
    with working():
        eventually(lambda: list(state.event_statuses(application, curie).values()) == ["applied"])
    undo.assert_verified(application, curie)


def test_terminated_worker_applies_its_batch_and_takes_no_other(
    application: Application, places: Servers, curie: str, start: Start, working: Working
) -> None:
    with pause_applying(places):
        held = undo.stream(application, curie, 4, seed=51)
        worker = start("worker")
        eventually(lambda: count_paused(application) == 1)
        worker.terminate()
        later = undo.stream(application, curie, 4, seed=52)
    assert worker.wait_for_end() == 0, worker.output
    assert state.event_statuses(application, curie) == dict.fromkeys(held, "applied") | dict.fromkeys(
        later, "pending"
    )
    assert orphans(application, curie) == {}
    with working():
        eventually(lambda: set(state.event_statuses(application, curie).values()) == {"applied"})
    assert [row["attempts"] for row in state.rows(application, curie, "feedback_event")] == [0] * 8
    undo.assert_verified(application, curie)


@contextmanager
def unwritten(places: Servers) -> Iterator[None]:
    """Whoever writes passages meanwhile waits."""
    address = places.database_url.replace("postgresql+psycopg", "postgresql")
    with closing(psycopg.connect(address)) as connection:
        connection.execute("LOCK TABLE entity_sentence IN EXCLUSIVE MODE")
        yield


def test_terminated_worker_ingests_its_batch_and_resumes_after_restart(
    application: Application, places: Servers, collection: str, start: Start, working: Working
) -> None:
    with unwritten(places):
        job = state.stage_passages(application, collection, *CURIE)
        worker = start("worker", **{INGEST_BATCH: "2"})
        eventually(lambda: count_paused(application) == 1)
        worker.terminate()
        time.sleep(1.0)  # until a busy machine has told the worker
    assert worker.wait_for_end() == 0, worker.output
    half = application.jobs.jobs.job(application.auth.access.scope(collection), job)
    assert (half.status, half.created, half.attempts) == ("queued", 2, 0)
    with working():
        eventually(
            lambda: application.jobs.jobs.job(application.auth.access.scope(collection), job).status == "succeeded"
        )
    assert application.jobs.jobs.job(application.auth.access.scope(collection), job).created == len(CURIE)
    assert state.counts(application, collection) == state.true_counts(application, collection)
    assert orphans(application, collection) == {}
