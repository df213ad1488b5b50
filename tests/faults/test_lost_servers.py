"""Postgres and Redis killed under a running service: nothing accepted is lost, and it recovers by itself.

One API and one worker live through everything here; none of them is ever started again.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
import redis

from engram.composition.container import Application, Servers
from engram.wings.local.servers import EmbeddedPostgres, EmbeddedRedis
from tests.api.operations import assert_problem
from tests.faults.conftest import QUESTION, count_paused, pause_applying, post_verdict
from tests.support import state, undo
from tests.support.orphans import orphans
from tests.support.processes import PATIENCE_SECONDS, Process, eventually


@pytest.fixture(scope="module")
def places(postgres: EmbeddedPostgres, own_redis: EmbeddedRedis) -> Servers:
    """Servers that a test may kill."""
    return Servers(postgres.url, own_redis.url)


@pytest.fixture(scope="module")
def worker(env: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    with Process("worker", tmp_path_factory.mktemp("worker"), env) as process:
        yield process
        assert process.running
        process.terminate()
        assert process.wait_for_end() == 0


@pytest.fixture(scope="module")
def api(
    env: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory, worker: Process
) -> Iterator[httpx.Client]:
    """A client of the API, once the worker works as well."""
    with Process("serve", tmp_path_factory.mktemp("api"), env) as process:
        with httpx.Client(base_url=process.ready().url, timeout=PATIENCE_SECONDS, trust_env=False) as client:
            worker.ready()
            yield client
        assert process.running
        process.terminate()
        assert process.wait_for_end() == 0


@pytest.fixture(autouse=True)
def nothing_failed(worker: Process, api: httpx.Client) -> Iterator[None]:
    """Whatever a server does, the worker waits for it and calls it no failure."""
    yield
    assert "loop failed" not in worker.output
    assert "event not applied" not in worker.output


def build_applied_check(application: Application, collection: str) -> Callable[[], bool]:
    return lambda: set(state.event_statuses(application, collection).values()) == {"applied"}


def assert_whole(application: Application, collection: str, events: int) -> None:
    rows = state.rows(application, collection, "feedback_event")
    assert [(row["status"], row["attempts"]) for row in rows] == [("applied", 0)] * events
    assert orphans(application, collection) == {}
    undo.assert_verified(application, collection)


def assert_come_back_later(response: httpx.Response) -> None:
    assert response.status_code == 503, response.text
    assert_problem(response)
    assert response.json()["type"] == "urn:engram:problem:unavailable"
    assert int(response.headers["retry-after"]) > 0


@contextmanager
def send_requests(api: httpx.Client, collection: str) -> Iterator[list[httpx.Response]]:
    """Requests one after the other, reads and writes, for the length of the block."""
    answers: list[httpx.Response] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            answers.append(api.get(f"/collections/{collection}"))
            answers.append(api.post("/query", json={"collection": collection, "query": QUESTION}))

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask)
        try:
            yield answers
        finally:
            over.set()
        asking.result()


class TestPostgres:
    def test_backends_ended_in_the_middle_of_their_transactions(
        self, application: Application, places: Servers, api: httpx.Client, curie: str
    ) -> None:
        with pause_applying(places), ThreadPoolExecutor(1) as pool:
            undo.stream(application, curie, 6, seed=21)
            eventually(lambda: count_paused(application) == 1)
            answer = pool.submit(post_verdict, api, curie, "waited", wait=True)
            eventually(lambda: count_paused(application) == 2)
            with application.database.read() as reader:
                ended = reader.rows(
                    """
                    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE wait_event_type = 'Lock' AND datname = current_database()
                    """
                )
            assert len(ended) == 2
            assert_come_back_later(answer.result())
            assert "applied" not in state.event_statuses(application, curie).values()

        eventually(build_applied_check(application, curie))
        assert_whole(application, curie, 7)

    def test_a_killed_postmaster(
        self, application: Application, places: Servers, postgres: EmbeddedPostgres, api: httpx.Client, curie: str
    ) -> None:
        with send_requests(api, curie) as answers:
            with pause_applying(places), suppress(psycopg.OperationalError):
                undo.stream(application, curie, 12, seed=22)
                assert post_verdict(api, curie, "before").status_code == 202
                eventually(lambda: count_paused(application) == 1)
                os.kill(int(postgres.pid or 0), signal.SIGKILL)
                eventually(lambda: not postgres.is_alive())
            eventually(lambda: answers[-1].status_code == 503)
            for path in ("/readyz", "/collections", f"/feedback?collection={curie}"):
                assert_come_back_later(api.get(path))
            refused = api.post(f"/passages?collection={curie}", json={"passages": [{"id": "a", "text": "b"}]})
            assert_come_back_later(refused)
            assert api.get("/healthz").status_code == 200
            postgres.start()
            eventually(lambda: api.get("/readyz").status_code == 200)
            eventually(lambda: answers[-1].status_code == 200)
        assert {answer.status_code for answer in answers} == {200, 503}
        for answer in answers:
            if answer.status_code == 503:
                assert_come_back_later(answer)

        eventually(build_applied_check(application, curie))
        assert post_verdict(api, curie, "after", wait=True).json()["status"] == "applied"
        assert_whole(application, curie, 14)


class TestRedis:
    def test_a_killed_redis(
        self, application: Application, own_redis: EmbeddedRedis, api: httpx.Client, curie: str
    ) -> None:
        assert post_verdict(api, curie, "before").status_code == 202
        os.kill(int(own_redis.pid or 0), signal.SIGKILL)
        eventually(lambda: not own_redis.is_alive())
        assert [post_verdict(api, curie, uuid4().hex).status_code for _ in range(2)] == [202] * 2
        eventually(build_applied_check(application, curie))
        assert api.get("/readyz").json()["redis"] == "unreachable"

        own_redis.start()
        eventually(lambda: api.get("/readyz").json()["redis"] == "ok")
        assert post_verdict(api, curie, "after").status_code == 202
        eventually(build_applied_check(application, curie))
        assert_whole(application, curie, 4)

    def test_everything_in_redis_lost_while_verdicts_are_in_flight(
        self,
        application: Application,
        places: Servers,
        stream: "redis.Redis[Any]",
        api: httpx.Client,
        curie: str,
    ) -> None:
        with pause_applying(places):
            undo.stream(application, curie, 8, seed=23)
            eventually(lambda: count_paused(application) == 1)
            assert post_verdict(api, curie, "in-flight").status_code == 202
            stream.flushall()
        eventually(build_applied_check(application, curie))
        stream.flushall()
        assert post_verdict(api, curie, "later").status_code == 202
        eventually(build_applied_check(application, curie))
        assert_whole(application, curie, 10)
