"""Servers out of reach: without Postgres everything says so, without Redis only learning is late."""

import os
import signal
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from anyio import to_thread

from engram.composition.container import Application
from engram.runtime.api_process import create_app
from engram.services.maintenance import health_checks
from tests.api import operations
from tests.api.conftest import Variant
from tests.api.operations import WALKED, assert_problem
from tests.support.strict_client import TestClient

PATHS = [operation for operation in WALKED if operation[1] not in {"/healthz", "/access/me"}]
QUESTION = "Where was Marie Curie born?"


@pytest.mark.routes
def test_without_postgres_every_route_says_when_to_come_back(without_postgres: TestClient) -> None:
    for method, path in PATHS:
        arguments = operations.well_formed(method, path)
        response = without_postgres.request(method, operations.url(path), **arguments)
        assert response.status_code == 503, (method, path)
        assert_problem(response)
        assert "127.0.0.1" not in response.text  # as the driver's words have it
        if path not in operations.WORDED:  # it needs an LLM first
            assert response.json()["type"] == "urn:engram:problem:unavailable", (method, path)
            assert int(response.headers["retry-after"]) > 0


def test_without_postgres_a_stream_is_refused_too(without_postgres: TestClient) -> None:
    content = b"\n".join([b'{"id": "a", "text": "b"}'] * 1_200)
    response = without_postgres.post("/passages", content=content, headers={"content-type": "application/x-ndjson"})
    assert response.status_code == 503
    assert_problem(response)


def test_without_postgres_the_process_is_alive_and_not_ready(without_postgres: TestClient) -> None:
    assert without_postgres.get("/healthz").json() == {"status": "ok"}
    ready = without_postgres.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (503, 503)
    assert ready.json()["detail"] == "Postgres cannot serve this now; the log says why."


def test_a_stopped_postgres_is_told_though_requests_wait_for_it(
    variant: Variant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health_checks, "ANSWER_SECONDS", 0.5)
    stopped = variant(database_pool_size=1)

    async def leave_one_thread() -> None:
        to_thread.current_default_thread_limiter().total_tokens = 1

    with TestClient(create_app(stopped)) as client, ThreadPoolExecutor() as threads:
        client.get("/readyz").raise_for_status()
        client.portal.call(leave_one_thread)
        with stopped.database.read() as reader:
            backend = reader.scalar("SELECT pg_backend_pid()")
        os.kill(backend, signal.SIGSTOP)
        try:
            waiting = threads.submit(client.get, "/collections")
            ready = threads.submit(client.get, "/readyz").result(timeout=30)
        finally:
            os.kill(backend, signal.SIGCONT)
        assert (ready.status_code, ready.json()["detail"][-24:]) == (503, "not answer within 0.5 s.")
        waiting.result().raise_for_status()
        client.get("/readyz").raise_for_status()


def test_a_redis_that_says_nothing_is_out_of_reach(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health_checks, "ANSWER_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        without = variant(redis_url=f"redis://127.0.0.1:{silent.getsockname()[1]}")
        ready = TestClient(create_app(without)).get("/readyz")
    assert (ready.status_code, ready.json()["status"], ready.json()["redis"]) == (200, "degraded", "unreachable")


def test_error_hides_the_database_password(variant: Variant) -> None:
    dead = variant(database_url="postgresql://engram:open-sesame@127.0.0.1:1/engram")
    response = TestClient(create_app(dead), raise_server_exceptions=False).get("/collections")
    assert response.status_code == 503
    assert "open-sesame" not in response.text


def test_without_redis_everything_goes_on(without_redis: TestClient, http: TestClient, curie: str) -> None:
    ready = without_redis.get("/readyz")
    assert ready.status_code == 200
    assert (ready.json()["status"], ready.json()["redis"], ready.json()["postgres"]) == (
        "degraded",
        "unreachable",
        "ok",
    )
    asked = without_redis.post("/query", json={"collection": curie, "query": QUESTION})
    assert asked.status_code == 200
    body = {"collection": curie, "query_id": asked.json()["query_id"], "supporting": []}
    later = without_redis.post("/feedback", json=body, headers={"idempotency-key": "later"})
    assert (later.status_code, later.json()["status"]) == (202, "pending")
    now = without_redis.post("/feedback", json=body | {"wait": True}, headers={"idempotency-key": "now"})
    assert (now.status_code, now.json()["status"]) == (200, "applied")
    http.app.state.services.learning.learner.apply_overdue(0.0, 100)  # type: ignore[attr-defined]
    read = http.get(f"/feedback/{later.json()['feedback_id']}", params={"collection": curie})
    assert read.json()["status"] == "applied"
    sent = without_redis.post(f"/passages?collection={curie}", json={"passages": [{"id": "a", "text": "b"}]})
    assert sent.status_code == 202


def test_with_everything_it_is_ready(http: TestClient, application: Application) -> None:
    assert application.stream.beat()
    ready = http.get("/readyz").json()
    assert (ready["status"], ready["postgres"], ready["redis"], ready["llm"]) == (
        "ok",
        "ok",
        "ok",
        "not configured",
    )
