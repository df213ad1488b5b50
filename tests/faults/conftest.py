"""A database for each module, or servers that a test may kill, with Engram's own processes on them."""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

import httpx
import psycopg
import pytest
import redis
import structlog

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.runtime.api_process import create_app
from engram.storage.schema_revision import migrate
from engram.wings.local.servers import EmbeddedPostgres, EmbeddedRedis
from tests.conftest import PAGES_MB, Heavy
from tests.support.constants import EAGER, SWEEP_SECONDS, set_constants
from tests.support.processes import Process
from tests.support.strict_client import TestClient
from tests.support.workers import run_in_thread

QUESTION = "Where was Marie Curie born?"


@pytest.fixture(autouse=True, scope="session")
def short_tracebacks() -> Iterator[None]:
    """Failures that tests provoke are logged without the values of variables, which take seconds to print."""
    renderer = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[structlog.processors.add_log_level, renderer])
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    """A Postgres that a test may kill and start again."""
    with EmbeddedPostgres(tmp_path_factory.mktemp("faults") / "postgres", memory_mb=PAGES_MB) as server:
        migrate(server.url)
        yield server


@pytest.fixture(scope="module")
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    """A Redis that a test may kill and start again."""
    with EmbeddedRedis(tmp_path_factory.mktemp("faults") / "redis") as server:
        yield server


@pytest.fixture(scope="module")
def places(own: Servers) -> Servers:
    """A database of the module's own in both servers of all tests; who kills servers has others."""
    return Servers(own.database_url, own.redis_url.replace("db=0", "db=2"))


@pytest.fixture(scope="module")
def application(settings: Settings, places: Servers, heavy: Heavy) -> Iterator[Application]:
    """The tests' own application on these servers."""
    app = _application(settings, places, heavy)
    app.startup.warm_up()
    yield app
    app.close()


def _application(settings: Settings, places: Servers, heavy: Heavy) -> Application:
    app = Application(settings, places, consumer="tests")
    app.models.embedder, app.models.language = heavy
    return app


@pytest.fixture
def stream(places: Servers) -> Iterator["redis.Redis"]:
    """The Redis itself, empty."""
    client = redis.Redis.from_url(places.redis_url)
    client.flushdb()
    yield client
    client.close()


@pytest.fixture
def bystander(places: Servers) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    """A connection that belongs to none of ours."""
    address = places.database_url.replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(address, autocommit=True) as connection:
        yield connection


@pytest.fixture
def client(application: Application) -> Iterator[TestClient]:
    """A client of the API, here in this process."""
    with TestClient(create_app(application), raise_server_exceptions=False) as http:
        yield http


@pytest.fixture(scope="module")
def env(settings: Settings, places: Servers) -> Mapping[str, str]:
    """What tells a process where everything is; a worker looks often for what nobody announced."""
    return {
        "DATABASE_URL": places.database_url,
        "REDIS_URL": places.redis_url,
        "ENGRAM_DATA_DIR": str(settings.data_dir),
        SWEEP_SECONDS: "0.2",
        **{place: str(value) for place, value in EAGER.items()},
    }


Start = Callable[..., Process]


@pytest.fixture
def start(env: Mapping[str, str], tmp_path: Path) -> Iterator[Start]:
    """Starts processes, which end with the test: a command, where it kills itself, and settings."""
    with ExitStack() as stack:

        def start_process(command: str, *killed: str, **settings: str) -> Process:
            return stack.enter_context(Process(command, tmp_path, {**env, **settings}, *killed))

        yield start_process


Working = Callable[..., AbstractContextManager[Application]]


@pytest.fixture
def working(settings: Settings, places: Servers, heavy: Heavy, monkeypatch: pytest.MonkeyPatch) -> Working:
    """A worker without fault, in a thread of this process, for the length of a block."""
    monkeypatch.setattr("engram.runtime.worker.BLOCK_MS", 50)
    monkeypatch.setattr("engram.runtime.worker.RETRY_SECONDS", 0.1)
    monkeypatch.setattr("engram.runtime.worker.JOB_POLL_SECONDS", 0.05)
    monkeypatch.setattr("engram.runtime.worker.Worker._maintain_indexes", lambda _: time.sleep(0.05))

    @contextmanager
    def run(constants: Mapping[str, object] | None = None, **changed: object) -> Iterator[Application]:
        set_constants(monkeypatch, {SWEEP_SECONDS: 0.1} | dict(constants or {}))
        app = _application(settings.model_copy(update=changed), places, heavy)
        with run_in_thread(app):
            yield app

    return run  # type: ignore[return-value]


@contextmanager
def pause_applying(places: Servers) -> Iterator[None]:
    """Whoever applies verdicts meanwhile stands still with half of its rows written."""
    address = places.database_url.replace("postgresql+psycopg", "postgresql")
    with closing(psycopg.connect(address)) as connection:
        connection.execute("LOCK TABLE learned_weights IN EXCLUSIVE MODE")
        yield


def count_paused(application: Application) -> int:
    with application.database.read() as reader:
        return int(
            reader.scalar(
                """
                SELECT count(*) FROM pg_stat_activity
                WHERE wait_event_type = 'Lock' AND datname = current_database() AND backend_xid IS NOT NULL
                """
            )
        )


def post_verdict(api: httpx.Client, collection: str, key: str, *, wait: bool = False) -> httpx.Response:
    """A verdict on a question asked before; it is complete, and so teaches the weights of rankings too."""
    asked = api.post("/query", json={"collection": collection, "query": QUESTION}).json()
    body = {
        "collection": collection,
        "query_id": asked["query_id"],
        "supporting": [{"passage_id": "curie", "text": "Marie Curie was born in Warsaw in 1867."}],
        "complete": True,
        "wait": wait,
    }
    return api.post("/feedback", json=body, headers={"idempotency-key": key})
