"""The worker against real servers: woken by the stream, and by nothing when the stream is lost."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
import redis

from engram.composition.container import Application, Servers
from engram.composition.startup import Startup
from engram.runtime.worker import Worker
from engram.services.jobs.job_runner import JobThreads
from engram.storage.wake_stream import GROUP, STREAM, WakeStream
from engram.telemetry.metrics_endpoint import MetricsEndpoint
from engram.wings.local.servers import EmbeddedRedis
from tests.conftest import CURIE
from tests.support import state
from tests.support.constants import SWEEP_SECONDS, set_constants
from tests.support.processes import eventually
from tests.support.workers import run_in_thread, start_worker

PATIENCE_SECONDS = 30.0
NEVER_SECONDS = 3600.0
SOON_SECONDS = 0.2


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[EmbeddedRedis]:
    """A Redis that a test may stop and start."""
    with EmbeddedRedis(tmp_path / "redis") as server:
        yield server


@contextmanager
def run_worker(
    application: Application, addresses: Servers, redis_url: str, sweep_seconds: float
) -> Iterator[Application]:
    """A worker of its own process's making, stopped at the end; its application shares only what is heavy."""
    app = Application(application.settings, replace(addresses, redis_url=redis_url), consumer="worker")
    app.models.embedder, app.models.language = application.models.embedder, application.models.language
    with pytest.MonkeyPatch.context() as patch:
        set_constants(patch, {SWEEP_SECONDS: sweep_seconds})
        with run_in_thread(app):
            yield app


def add_pending_verdict(app: Application, collection: str) -> int:
    """An event that waits for a worker."""
    sentences = state.list_sentence_ids(app, collection)
    query_id = state.add_episode(app, collection, "Where was Marie Curie born?", sentences[:2])
    return state.judge(app, collection, query_id, sentences[:1]).event.id


def is_applied(app: Application, collection: str, event: int) -> bool:
    return state.event_statuses(app, collection)[event] == "applied"


def test_an_announced_event_is_applied(
    application: Application, addresses: Servers, own_redis: EmbeddedRedis, curie: str
) -> None:
    client = redis.Redis.from_url(own_redis.url)
    with run_worker(application, addresses, own_redis.url, NEVER_SECONDS) as app:
        event = add_pending_verdict(app, curie)
        eventually(lambda: is_applied(app, curie, event))
        eventually(lambda: client.xlen(STREAM) == 0)
        eventually(lambda: client.xpending(STREAM, GROUP)["pending"] == 0)


def test_an_event_announced_before_the_worker_came_is_applied(
    application: Application, addresses: Servers, own_redis: EmbeddedRedis, curie: str
) -> None:
    stream = WakeStream(own_redis.url)
    with run_worker(application, addresses, own_redis.url, NEVER_SECONDS) as app:
        first = add_pending_verdict(app, curie)
        eventually(lambda: is_applied(app, curie, first))
    second = add_pending_verdict(application, curie)
    assert stream.wake([(state.collection_id(application, curie), second)])
    stream.close()

    with run_worker(application, addresses, own_redis.url, NEVER_SECONDS) as app:
        eventually(lambda: is_applied(app, curie, second))


def test_without_redis_events_are_accepted_and_swept_up(
    application: Application, addresses: Servers, own_redis: EmbeddedRedis, curie: str
) -> None:
    with run_worker(application, addresses, own_redis.url, SOON_SECONDS) as app:
        own_redis.stop()
        event = add_pending_verdict(app, curie)
        eventually(lambda: is_applied(app, curie, event))
        own_redis.start()
        again = add_pending_verdict(app, curie)
        eventually(lambda: is_applied(app, curie, again))


def test_a_lost_announcement_is_made_good_by_the_sweep(
    application: Application, addresses: Servers, own_redis: EmbeddedRedis, curie: str
) -> None:
    event = add_pending_verdict(application, curie)
    client = redis.Redis.from_url(own_redis.url)
    with run_worker(application, addresses, own_redis.url, SOON_SECONDS) as app:
        eventually(lambda: is_applied(app, curie, event))
        client.flushall()
        after = add_pending_verdict(app, curie)
        client.flushall()
        eventually(lambda: is_applied(app, curie, after))


def test_an_announcement_delivered_again_is_harmless(
    application: Application, addresses: Servers, own_redis: EmbeddedRedis, curie: str
) -> None:
    client = redis.Redis.from_url(own_redis.url)
    with run_worker(application, addresses, own_redis.url, NEVER_SECONDS) as app:
        event = add_pending_verdict(app, curie)
        eventually(lambda: is_applied(app, curie, event))
        learned = state.list_learned(app, curie)
        for _ in range(3):
            app.stream.wake([(state.collection_id(app, curie), event)])
        eventually(lambda: client.xlen(STREAM) == 0)

        assert state.list_learned(app, curie) == learned


def test_an_announcement_of_what_does_not_exist_is_dropped(
    application: Application, addresses: Servers, own_redis: EmbeddedRedis, curie: str
) -> None:
    client = redis.Redis.from_url(own_redis.url)
    with run_worker(application, addresses, own_redis.url, NEVER_SECONDS) as app:
        app.stream.wake([(2**62, 1)])
        app.stream.wake([(state.collection_id(app, curie), 2**62)])
        event = add_pending_verdict(app, curie)
        eventually(lambda: is_applied(app, curie, event))
        eventually(lambda: client.xlen(STREAM) == 0)


def test_an_announcement_that_a_dead_worker_held_is_taken_over(
    own_redis: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engram.storage.wake_stream.CLAIM_IDLE_MS", 0)
    dead, heir = WakeStream(own_redis.url, "dead"), WakeStream(own_redis.url, "heir")
    assert dead.receive(10, 1) == []
    dead.wake([(1, 2)])
    held = dead.receive(10, 1_000)

    taken = heir.receive(10, 1_000)

    assert [(collection, event) for _, collection, event in held] == [(1, 2)]
    assert taken == held
    heir.acknowledge(taken)
    assert dead.receive(10, 1) == heir.receive(10, 1) == []
    dead.close()
    heir.close()


def test_staged_passages_are_ingested(
    application: Application, addresses: Servers, own_redis: EmbeddedRedis, collection: str
) -> None:
    with run_worker(application, addresses, own_redis.url, NEVER_SECONDS) as app:
        job_id = state.stage_passages(app, collection, *CURIE)
        eventually(lambda: app.jobs.jobs.job(app.auth.access.scope(collection), job_id).status == "succeeded")

        assert app.jobs.jobs.job(app.auth.access.scope(collection), job_id).created == len(CURIE)


def test_names_are_embedded_by_a_worker_once_passages_are_in(
    application: Application, addresses: Servers, own_redis: EmbeddedRedis, collection: str
) -> None:
    state.stage_passages(application, collection, *CURIE)

    def count_waiting(app: Application) -> int:
        with app.database.read() as reader:
            return int(
                reader.scalar(
                    "SELECT count(*) FROM entity WHERE collection_id = %(id)s AND embedding IS NULL",
                    {"id": app.auth.access.scope(collection).collection.id},
                )
            )

    with run_worker(application, addresses, own_redis.url, NEVER_SECONDS) as app:
        eventually(lambda: app.auth.access.scope(collection).collection.entity_count > 0)
        eventually(lambda: count_waiting(app) == 0)


def test_stopping_ends_an_idle_worker(
    application: Application, addresses: Servers, own_redis: EmbeddedRedis
) -> None:
    with run_worker(application, addresses, own_redis.url, NEVER_SECONDS):
        pass


def test_stopping_ends_a_worker_that_waits_for_redis(
    application: Application, addresses: Servers, own_redis: EmbeddedRedis
) -> None:
    own_redis.stop()
    with run_worker(application, addresses, own_redis.url, NEVER_SECONDS):
        pass


def test_a_revocation_is_carried_out(
    application: Application, addresses: Servers, own_redis: EmbeddedRedis, curie: str
) -> None:
    with run_worker(application, addresses, own_redis.url, NEVER_SECONDS) as app:
        event = add_pending_verdict(app, curie)
        eventually(lambda: is_applied(app, curie, event))
        job = app.learning.revocation.request(app.auth.access.scope(curie))
        eventually(lambda: app.jobs.jobs.job(app.auth.access.scope(curie), job).status == "succeeded")
        assert state.event_statuses(app, curie) == {event: "revoked"}


def test_retention_of_a_lost_worker_is_taken_over(
    application: Application,
    addresses: Servers,
    own_redis: EmbeddedRedis,
    curie: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engram.runtime.worker.HELD_SECONDS", SOON_SECONDS)
    with application.database.write() as writer:
        writer.execute(
            """
            INSERT INTO idempotency (collection_id, key, body_hash, answer, created_at)
            VALUES (%(c)s, 'old', '', '{}', now() - interval '10 years')
            """,
            {"c": state.collection_id(application, curie)},
        )

    def is_kept() -> bool:
        return bool(state.rows(application, curie, "idempotency"))

    with psycopg.connect(addresses.database_url.replace("+psycopg", "")) as lost:
        lost.execute("SELECT pg_advisory_lock(hashtextextended('retention', 0))")
        with run_worker(application, addresses, own_redis.url, NEVER_SECONDS) as app:
            event = add_pending_verdict(app, curie)
            eventually(lambda: is_applied(app, curie, event))
            time.sleep(3 * SOON_SECONDS)
            assert is_kept()
            lost.close()  # as of a process that is killed
            eventually(lambda: not is_kept())


def test_jobs_are_done_once_their_threads_can_be_made(
    application: Application,
    addresses: Servers,
    own_redis: EmbeddedRedis,
    collection: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failures = [RuntimeError("no threads yet")]

    def make_threads(*arguments: Any) -> JobThreads:
        if failures:
            raise failures.pop()
        return JobThreads(*arguments)

    monkeypatch.setattr("engram.runtime.worker.JobThreads", make_threads)
    with run_worker(application, addresses, own_redis.url, NEVER_SECONDS) as app:
        job_id = state.stage_passages(app, collection, *CURIE)
        eventually(lambda: app.jobs.jobs.job(app.auth.access.scope(collection), job_id).status == "succeeded")
    assert not failures


def test_jobs_loop_that_dies_is_reported_as_stuck(
    application: Application, addresses: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end_loop(*_: Any) -> JobThreads:
        raise SystemExit  # which the loop does not outlive

    monkeypatch.setattr("engram.runtime.worker.JobThreads", end_loop)
    monkeypatch.setattr("engram.runtime.heartbeat.STUCK_SECONDS", 2.0)
    app = Application(application.settings, addresses)
    app.models.embedder, app.models.language = application.models.embedder, application.models.language
    with start_worker(app) as worker:
        check = worker.checks()["/healthz"]
        eventually(lambda: check() == (503, {"status": "stuck", "loops": ["jobs"]}))


def test_worker_reports_liveness_and_readiness(
    application: Application, addresses: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Application(application.settings, addresses, consumer="probed")
    app.models.embedder, app.models.language = application.models.embedder, application.models.language
    worker = Worker(app)
    exposed = MetricsEndpoint("127.0.0.1", 0, checks=worker.checks())

    def get_status(path: str) -> tuple[int, str]:
        answer = httpx.get(f"http://127.0.0.1:{exposed.port}{path}", trust_env=False)
        return answer.status_code, answer.json()["status"]

    thread = threading.Thread(target=worker.run)
    try:
        assert get_status("/readyz") == (503, "starting")
        thread.start()
        eventually(lambda: get_status("/readyz")[0] == 200)
        assert get_status("/healthz") == (200, "ok")
        with monkeypatch.context() as impatient:
            impatient.setattr("engram.runtime.heartbeat.STUCK_SECONDS", 0.0)
            eventually(lambda: get_status("/healthz") == (503, "stuck"))  # once a loop has begun
        worker.stop()
        assert get_status("/readyz") == (503, "ending")
    finally:
        worker.stop()
        thread.join(PATIENCE_SECONDS)
        exposed.close()
        app.close()


def test_worker_is_not_ready_without_its_database(
    application: Application, addresses: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Startup, "warm_up", lambda _: None)  # which asks the database
    app = Application(application.settings, replace(addresses, database_url="postgresql://127.0.0.1:1/engram"))
    app.models.embedder, app.models.language = application.models.embedder, application.models.language
    with start_worker(app) as worker:
        check = worker.checks()["/readyz"]
        eventually(lambda: check()[1]["status"] != "starting")
        status, answer = check()
        assert (status, answer["status"]) == (503, "unavailable")
