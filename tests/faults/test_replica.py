"""Queries on a real streaming replica: read there, but never without what somebody was told of.

While it lags, stands still, is away or was promoted, the primary answers, and readiness says so.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.runtime.api_process import create_app
from engram.storage import replica
from engram.telemetry import metrics
from engram.wings.local.servers import EmbeddedPostgres, EmbeddedRedis
from engram.wings.upkeep.parts import upkeep_of
from tests.conftest import CURIE, Heavy
from tests.support import standby, state
from tests.support.constants import READ_LAG, READ_WAIT, set_constants
from tests.support.processes import eventually
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"
LAG_SECONDS = 0.5


@pytest.fixture(scope="module")
def primary(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    with standby.open_primary(tmp_path_factory.mktemp("primary")) as server:
        yield server


@pytest.fixture(scope="module")
def second(primary: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    with standby.open_replica(primary, tmp_path_factory.mktemp("standby")) as server:
        yield server


@pytest.fixture(scope="module")
def places(primary: EmbeddedPostgres, own_redis: EmbeddedRedis) -> Servers:
    return Servers(primary.url, own_redis.url)


Make = Callable[..., Application]


@pytest.fixture(scope="module")
def make(
    settings: Settings, primary: EmbeddedPostgres, own_redis: EmbeddedRedis, second: EmbeddedPostgres, heavy: Heavy
) -> Iterator[Make]:
    """Makes applications, as of processes of their own, which read on the replica."""
    made: list[Application] = []

    def open_application(
        url: str = primary.url, *, lag: float = 300.0, wait: float = 0.25, **changed: Any
    ) -> Application:
        told = settings.model_copy(update={"read_database_url": SecretStr(second.url), **changed})
        with pytest.MonkeyPatch.context() as patch:
            set_constants(patch, {READ_LAG: lag, READ_WAIT: wait})
            app = Application(told, Servers(url, own_redis.url), consumer="tests")
        app.models.embedder, app.models.language = heavy
        if app.database.replica is not None:
            app.database.replica.start()
            eventually(lambda: app.database.replica.get_last_position().lag_seconds is not None)
        made.append(app)
        return app

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replica, "LOOK_SECONDS", 0.05)
        yield open_application
        for app in made:
            app.close()


@pytest.fixture(scope="module")
def application(make: Make) -> Application:
    return make()


@pytest.fixture
def curie(application: Application, collection: str) -> str:
    put(application, collection, *CURIE)
    post_query(clients(application)[0], collection)  # from then on there is a floor
    caught_up(application)
    return collection


def put(app: Application, into: str, *passages: Mapping[str, Any]) -> None:
    """Passages that nobody was told of."""
    reception = app.corpus.ingest.receive(app.auth.access.prepare_opening(into))
    bodies = [{"title": None, "metadata": {}, "sentences": None} | dict(passage) for passage in passages]
    reception.add(list(enumerate(bodies, start=1)), [])
    reception.finish()
    app.jobs.runner.run_ready()


def caught_up(app: Application) -> None:
    """Wait until the replica has all that there is by now."""
    _, end = app.database.position()

    def has_replayed() -> bool:
        with replica.require_position(0), app.database.read() as reader:
            return int(reader.row(replica.STANDBY)[2]) >= end

    eventually(has_replayed)
    eventually(lambda: app.database.replica is not None and app.database.replica.usable)


@contextmanager
def pause_replay(server: EmbeddedPostgres) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    """A replica that replays nothing meanwhile."""
    with standby.connect_to(server) as connection:
        connection.execute("SELECT pg_wal_replay_pause()")
        while connection.execute("SELECT pg_get_wal_replay_pause_state()").fetchone() != ("paused",):
            time.sleep(0.005)
        try:
            yield connection
        finally:
            connection.execute("SELECT pg_wal_replay_resume()")


@contextmanager
def expect_outcome(outcome: str) -> Iterator[None]:
    """One read in the block, and it comes from there."""

    def counts() -> Counter[str]:
        (family,) = metrics.REPLICA_READS.collect()
        totals = [sample for sample in family.samples if sample.name.endswith("_total")]
        return Counter({sample.labels["outcome"]: int(sample.value) for sample in totals})

    before = counts()
    yield
    assert counts() - before == {outcome: 1}


def post_query(client: TestClient, collection: str) -> dict[str, Any]:
    body = {"collection": collection, "query": QUESTION, "include": ["trace"]}
    answer = client.post("/query", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def post_verdict(client: TestClient, collection: str, query_id: str, key: str, *, wait: bool) -> None:
    supporting = [{"passage_id": "curie", "text": "Marie Curie was born in Warsaw in 1867."}]
    body = {"collection": collection, "query_id": query_id, "supporting": supporting, "wait": wait}
    answer = client.post("/feedback", json=body, headers={"idempotency-key": key})
    assert answer.status_code == (200 if wait else 202), answer.text


def clients(*apps: Application) -> list[TestClient]:
    return [TestClient(create_app(app), raise_server_exceptions=False) for app in apps]


def test_unannounced_write_is_read_from_the_lagging_replica(
    application: Application, second: EmbeddedPostgres, curie: str
) -> None:
    (client,) = clients(application)
    with pause_replay(second):
        new = {"id": "new", "title": "Marie Curie", "text": "Marie Curie was born as Maria Sklodowska in Warsaw."}
        put(application, curie, new)
        with expect_outcome("replica"):
            answer = post_query(client, curie)
        assert "new" not in {hit["passage_id"] for hit in answer["passages"]}
        with application.database.read() as reader:  # what a query leaves is on the primary
            kept = reader.scalar("SELECT count(*) FROM episode WHERE id = %(id)s", {"id": answer["query_id"]})
        assert kept == 1

        job = client.get(f"/collections/{curie}/jobs", params={"limit": 1}).json()["jobs"][0]
        assert client.get(f"/jobs/{job['job_id']}").json()["status"] == "succeeded"
        with expect_outcome("behind"):
            answer = post_query(client, curie)
        assert "new" in {hit["passage_id"] for hit in answer["passages"]}
    caught_up(application)
    with expect_outcome("replica"):
        assert post_query(client, curie)["passages"] == answer["passages"]


def test_a_verdict_that_was_waited_for_is_seen_through_every_process(
    application: Application, make: Make, second: EmbeddedPostgres, curie: str
) -> None:
    one, other = clients(application, make())
    query = post_query(one, curie)["query_id"]
    with pause_replay(second):
        post_verdict(one, curie, query, "unawaited", wait=False)
        application.learning.learner.apply(
            state.collection_id(application, curie), list(state.event_statuses(application, curie))
        )
        with expect_outcome("replica"):
            assert post_query(one, curie)["trace"]["recalled"] == []
        post_verdict(one, curie, query, "awaited", wait=True)
        for client in (one, other):
            with expect_outcome("behind"):
                assert post_query(client, curie)["trace"]["recalled"]
    caught_up(application)
    for client in (one, other):
        with expect_outcome("replica"):
            assert post_query(client, curie)["trace"]["recalled"]


def test_a_query_waits_for_what_it_has_to_see(make: Make, second: EmbeddedPostgres, curie: str) -> None:
    patient = make(wait=20.0, lag=60.0)
    (client,) = clients(patient)
    query = post_query(client, curie)["query_id"]
    with pause_replay(second) as connection:
        post_verdict(client, curie, query, "awaited", wait=True)
        resume = threading.Timer(0.2, connection.execute, ["SELECT pg_wal_replay_resume()"])
        resume.start()
        began = time.monotonic()
        with expect_outcome("replica"):
            assert post_query(client, curie)["trace"]["recalled"]
        assert time.monotonic() - began >= 0.15
        resume.join()


def test_positions_that_redis_lost_are_not_missed(
    application: Application, second: EmbeddedPostgres, own_redis: EmbeddedRedis, curie: str, stream: Any
) -> None:
    (client,) = clients(application)
    query = post_query(client, curie)["query_id"]
    with pause_replay(second):
        post_verdict(client, curie, query, "awaited", wait=True)
        stream.flushall()
        with expect_outcome("behind"):
            assert post_query(client, curie)["trace"]["recalled"]
    caught_up(application)
    own_redis.stop()
    try:
        with expect_outcome("unfit"):
            assert post_query(client, curie)["trace"]["recalled"]
    finally:
        own_redis.start()


def test_a_replica_that_stands_still_grows_stale_and_the_doctor_says_so(
    make: Make, second: EmbeddedPostgres, curie: str
) -> None:
    application = make(lag=LAG_SECONDS)
    (client,) = clients(application)
    caught_up(application)
    assert client.get("/readyz").json()["replica"] == "ok"
    with pause_replay(second):
        put(application, curie, {"id": "new", "text": "Something new."})
        eventually(lambda: client.get("/readyz").json()["replica"] == "stale")
        said = client.get("/readyz").json()
        assert said["status"] == "degraded"
        assert said["replica_lag_seconds"] > LAG_SECONDS
        with expect_outcome("unfit"):
            post_query(client, curie)
        assert diagnose(application) == ("wrong", "stale")
    caught_up(application)
    assert client.get("/readyz").json()["replica"] == "ok"
    assert diagnose(application)[0] == "ok"


def test_a_replica_that_is_away_is_done_without(
    application: Application, second: EmbeddedPostgres, curie: str
) -> None:
    (client,) = clients(application)
    with expect_outcome("replica"):
        post_query(client, curie)
    second.stop()
    try:
        assert client.post("/query", json={"collection": curie, "query": QUESTION}).status_code == 200
        eventually(lambda: client.get("/readyz").json()["replica"] == "unreachable")
        with expect_outcome("unfit"):
            post_query(client, curie)
        assert diagnose(application) == ("wrong", "unreachable")
    finally:
        second.start()
    caught_up(application)
    with expect_outcome("replica"):
        post_query(client, curie)


def test_a_promoted_replica_is_one_no_longer_and_can_be_the_primary(
    application: Application, make: Make, second: EmbeddedPostgres, curie: str
) -> None:
    (client,) = clients(application)
    query = post_query(client, curie)["query_id"]
    post_verdict(client, curie, query, "awaited", wait=True)
    caught_up(application)
    with standby.connect_to(second) as connection:
        assert connection.execute("SELECT pg_promote()").fetchone() == (True,)
    eventually(lambda: client.get("/readyz").json()["replica"] == "not a replica")
    put(application, curie, {"id": "new", "title": "Marie Curie", "text": "Marie Curie was born in Warsaw indeed."})
    with expect_outcome("unfit"):
        assert "new" in {hit["passage_id"] for hit in post_query(client, curie)["passages"]}
    assert diagnose(application) == ("wrong", "not a replica")

    promoted = make(second.url, read_database_url=None)
    (moved,) = clients(promoted)
    answer = post_query(moved, curie)
    assert answer["trace"]["recalled"]
    post_verdict(moved, curie, answer["query_id"], "after", wait=True)
    assert set(state.event_statuses(promoted, curie).values()) == {"applied"}


def diagnose(app: Application) -> tuple[str, str]:
    (finding,) = (one for one in upkeep_of(app).doctor.examine() if one.thing == "replica")
    return finding.verdict, finding.found
