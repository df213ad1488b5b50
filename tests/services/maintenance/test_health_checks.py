"""Readiness tells of what waits and of who works."""

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

import pytest
import redis as redis_client
from pydantic import SecretStr

from engram.composition.container import Application, Servers
from engram.context.errors import ConfigurationError, UnavailableError
from engram.runtime import heartbeat
from engram.services.maintenance import health_checks
from engram.storage.wake_stream import BEATS_LAST_SECONDS, WORKERS, WakeStream
from tests.support import state
from tests.support.databases import application_on

CONSUMER = f"worker-{uuid4()}"


@pytest.fixture
def stream(addresses: Servers) -> Iterator[WakeStream]:
    """A consumer, alone with its beats."""
    with redis_client.Redis.from_url(addresses.redis_url) as client:
        client.delete(WORKERS)
    own = WakeStream(addresses.redis_url, CONSUMER)
    yield own
    own.leave()
    own.close()


@pytest.fixture(autouse=True)
def nothing_waits(application: Application) -> None:
    """What other tests left waiting came just now."""
    with application.database.write() as writer:
        writer.execute("UPDATE feedback_event SET received_at = now() WHERE status = 'pending'")


def test_readiness_knows_whether_anybody_works(application: Application, stream: WakeStream) -> None:
    alone = application.maintenance.health.readiness()
    assert (alone.status, alone.workers) == ("degraded", 0)
    assert stream.beat()
    assert stream.beat()
    seen = application.maintenance.health.readiness()
    assert (seen.status, seen.workers, seen.migrations) == ("ok", 1, "current")
    stream.leave()
    assert application.maintenance.health.readiness().workers == 0


def test_a_beat_runs_out(addresses: Servers, stream: WakeStream) -> None:
    stream.beat()
    with redis_client.Redis.from_url(addresses.redis_url) as client:
        client.zincrby(WORKERS, -BEATS_LAST_SECONDS - 1, CONSUMER)
        assert stream.workers() == 0
        other = WakeStream(addresses.redis_url, "other")
        other.beat()
        assert client.zrange(WORKERS, 0, -1) == [b"other"]
        other.leave()
        other.close()


def test_readiness_knows_how_long_verdicts_have_waited(
    application: Application, curie: str, stream: WakeStream
) -> None:
    stream.beat()
    query = state.add_episode(application, curie, "Where was Marie Curie born?", [])
    event = state.judge(application, curie, query).event
    with application.database.write() as writer:
        writer.execute(
            "UPDATE feedback_event SET received_at = now() - interval '1 hour' WHERE id = %(id)s", {"id": event.id}
        )
    late = application.maintenance.health.readiness()
    assert late.status == "degraded"
    assert late.oldest_verdict_seconds is not None
    assert 3600 <= late.oldest_verdict_seconds < 3700
    application.learning.learner.apply_overdue(0.0, 1_000)
    assert application.maintenance.health.readiness().oldest_verdict_seconds is None


def test_readiness_knows_how_long_jobs_have_waited(
    application: Application, curie: str, stream: WakeStream
) -> None:
    stream.beat()
    application.jobs.runner.run_ready()
    scope = application.auth.access.scope(curie)
    job = application.corpus.rekey.request(scope, "abstract")
    with application.database.write() as writer:
        writer.execute("UPDATE job SET due_at = now() - interval '1 hour' WHERE id = %(id)s", {"id": job})
    late = application.maintenance.health.readiness()
    assert late.status == "degraded"
    assert late.oldest_job_seconds is not None
    assert 3600 <= late.oldest_job_seconds < 3700
    application.jobs.runner.run_ready()
    assert application.maintenance.health.readiness().oldest_job_seconds is None


@pytest.mark.parametrize(("revision", "said"), [("0000", "newer"), (None, None)])
def test_readiness_knows_where_the_schema_stands(
    revision: str | None, said: str | None, application: Application
) -> None:
    with application.database.read() as reader:
        before = reader.scalar("SELECT version_num FROM alembic_version")
    change = (
        "DELETE FROM alembic_version" if revision is None else "UPDATE alembic_version SET version_num = '0000'"
    )
    with application.database.write() as writer:
        writer.execute(change)
    try:
        if said is None:
            with pytest.raises(UnavailableError, match="engram migrate"):
                application.maintenance.health.readiness()
        else:
            assert application.maintenance.health.readiness().migrations == said
    finally:
        with application.database.write() as writer:
            writer.execute("DELETE FROM alembic_version")
            writer.execute("INSERT INTO alembic_version VALUES (%(before)s)", {"before": before})


def test_readiness_knows_of_a_disk_that_is_nearly_full(
    application: Application, addresses: Servers, stream: WakeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream.beat()
    local = application.settings.model_copy(update={"wings": "local"})
    with application_on(addresses, local, application) as services:
        assert services.maintenance.health.readiness().disk_free_bytes == pytest.approx(
            shutil.disk_usage(local.data_dir).free, rel=0.2
        )
    # As the processes of `engram up` have it: the address of the embedded server is given to them.
    told = local.model_copy(update={"database_url": SecretStr(addresses.database_url)})
    with application_on(addresses, told, application) as services:
        assert services.maintenance.health.readiness().disk_free_bytes is not None
        full = SimpleNamespace(free=health_checks.LEAST_DISK_BYTES - 1)
        monkeypatch.setattr(shutil, "disk_usage", lambda _: full)
        assert services.maintenance.health.readiness().status == "degraded"


def test_a_worker_on_this_machine_can_be_asked_after(tmp_path: Path, stream: WakeStream) -> None:
    file = tmp_path / "beat"
    with pytest.raises(ConfigurationError, match="ENGRAM_WORKER_HEARTBEAT_FILE"):
        heartbeat.check(None)
    with pytest.raises(UnavailableError, match="not beaten yet"):
        heartbeat.check(file)
    heart = heartbeat.Heartbeat(stream, file)
    heart.turn("feedback")
    heart.beat()
    heartbeat.check(file)
    old = time.time() - BEATS_LAST_SECONDS - 1
    os.utime(file, (old, old))
    with pytest.raises(UnavailableError, match="last beat"):
        heartbeat.check(file)


def test_a_worker_with_a_loop_that_is_stuck_does_not_beat(
    tmp_path: Path, stream: WakeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    heart = heartbeat.Heartbeat(stream, tmp_path / "beat")
    heart.turn("feedback")
    monkeypatch.setattr(heartbeat, "STUCK_SECONDS", -1.0)
    heart.beat()
    assert heart.list_stuck_loops() == ["feedback"]
    assert not (tmp_path / "beat").exists()
    assert stream.workers() == 0


def test_a_beat_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="link"):
        heartbeat.touch(tmp_path / "link")
    assert not (tmp_path / "elsewhere").exists()
