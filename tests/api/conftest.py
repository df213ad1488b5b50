"""Applications beside the shared one: with an LLM, without Postgres, without Redis."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any
from uuid import UUID

import pytest

from engram.composition.container import Application, Servers
from engram.composition.parts import auth_services
from engram.config.settings import Settings
from engram.providers.embedder import Embedder
from engram.runtime.api_process import create_app
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.session_service import NewSession
from engram.wings.tuning.parts import tuning_of
from tests.support import state
from tests.support.encoder import RotatedEncoder
from tests.support.openai_server import OpenAiServer
from tests.support.strict_client import TestClient

UNREACHABLE = "127.0.0.1:1"
Variant = Callable[..., Application]


@pytest.fixture
def variant(application: Application, addresses: Servers, settings: Settings) -> Iterator[Variant]:
    """The shared application with other settings or addresses; what is heavy is shared with it."""
    with _variants(application, addresses, settings) as build:
        yield build


@pytest.fixture(scope="module")
def lasting(application: Application, addresses: Servers, settings: Settings) -> Iterator[Variant]:
    """The same for what many tests of a module ask."""
    with _variants(application, addresses, settings) as build:
        yield build


@contextmanager
def _variants(application: Application, addresses: Servers, settings: Settings) -> Iterator[Variant]:
    with ExitStack() as stack:

        def build(
            *,
            database_url: str = addresses.database_url,
            redis_url: str = addresses.redis_url,
            embedder: Embedder | None = None,
            **changed: Any,
        ) -> Application:
            built = Application(settings.model_copy(update=changed), Servers(database_url, redis_url))
            built.models.embedder, built.models.language = (
                embedder or application.models.embedder,
                application.models.language,
            )
            stack.callback(built.close)
            return built

        yield build


@pytest.fixture(scope="module")
def without_postgres(lasting: Variant) -> TestClient:
    """A client of an application whose Postgres is out of reach."""
    dead = lasting(database_url=f"postgresql://{UNREACHABLE}/engram")
    return TestClient(create_app(dead), raise_server_exceptions=False)


@pytest.fixture
def without_redis(variant: Variant) -> TestClient:
    """A client of an application whose Redis is out of reach."""
    return TestClient(create_app(variant(redis_url=f"redis://{UNREACHABLE}/0")), raise_server_exceptions=False)


@pytest.fixture
def llm_server() -> Iterator[OpenAiServer]:
    """An endpoint without any programmed reply: it answers 400."""
    with OpenAiServer() as server:
        yield server


@pytest.fixture(scope="module")
def refusing_llm() -> Iterator[OpenAiServer]:
    """The same for what many tests of a module ask."""
    with OpenAiServer() as server:
        yield server


@pytest.fixture(scope="module")
def with_llm(lasting: Variant, refusing_llm: OpenAiServer) -> TestClient:
    """A client of an application whose LLM answers 400."""
    return TestClient(create_app(lasting(llm_base_url=refusing_llm.base_url)), raise_server_exceptions=False)


@pytest.fixture(scope="module")
def spent(lasting: Variant) -> TestClient:
    """A client who has asked as often as it may."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auth_services, "REQUEST_BURST", 1)
        client = TestClient(create_app(lasting(rate_per_second=0.001)), raise_server_exceptions=False)
        client.get("/collections")
    return client


@pytest.fixture(scope="module")
def with_another_encoder(application: Application, lasting: Variant, refusing_llm: OpenAiServer) -> TestClient:
    """A client of an application with an LLM, whose encoder has made the vectors of no collection."""
    turned = lasting(embedder=RotatedEncoder(application.models.embedder), llm_base_url=refusing_llm.base_url)
    return TestClient(create_app(turned), raise_server_exceptions=False)


@pytest.fixture
def rekeying(application: Application, curie: str) -> Iterator[str]:
    """A collection with a re-key job that no worker has begun, and one that drops vectors."""
    application.corpus.rekey.request(application.auth.access.scope(curie), "abstract")
    application.corpus.reembed.request_drop(application.auth.access.scope(curie))
    yield curie
    application.corpus.ingest.delete_collection(application.auth.access.scope(curie))


@pytest.fixture
def tuning(application: Application, curie: str) -> Iterator[str]:
    """A collection whose question encoder is to be tuned by a job that no worker has begun."""
    tuning_of(application).tuning.request(application.auth.access.scope(curie))
    yield curie
    application.corpus.ingest.delete_collection(application.auth.access.scope(curie))


@pytest.fixture
def finished(application: Application, curie: str) -> tuple[str, UUID]:
    """A collection with a job that is over, and that."""
    (job,) = application.jobs.jobs.page(application.auth.access.scope(curie), None, 1)
    return curie, job.job.id


@pytest.fixture
def ended_session(application: Application, curie: str) -> tuple[str, UUID]:
    """A collection with a session that has ended by itself, and that."""
    scope = application.auth.access.scope(curie)
    session = sessions_of(application).sessions.start(scope, NewSession(question="Where was Marie Curie born?"))
    sessions_of(application).sessions.wait(scope, session)
    return curie, session


@pytest.fixture
def cancelled_session(application: Application, curie: str) -> tuple[str, UUID]:
    """A collection with a session that goes no further, and that."""
    scope = application.auth.access.scope(curie)
    session = sessions_of(application).sessions.start(scope, NewSession(question="Where was Marie Curie born?"))
    sessions_of(application).sessions.cancel(scope, session)
    return curie, session


@pytest.fixture
def waiting(application: Application, curie: str) -> tuple[str, int]:
    """A collection with a verdict that waits, and that."""
    query_id = state.add_episode(application, curie, "Where was Marie Curie born?", [])
    return curie, state.judge(application, curie, query_id).event.id


Counts = Callable[[], Mapping[str, int]]


@pytest.fixture
def counts(application: Application) -> Counts:
    """How many rows every table that a request can write to has."""
    tables = "collection job ingest_line ingest_error idempotency passage episode feedback_event".split()
    counted = "SELECT " + ", ".join(f"(SELECT count(*) FROM {table}) AS {table}" for table in tables)

    def count() -> Mapping[str, int]:
        with application.database.read() as reader:
            (row,) = reader.rows(counted)
            return {table: getattr(row, table) for table in tables}

    return count
