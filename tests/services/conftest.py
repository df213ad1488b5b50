"""What services' tests need: quiet failures, no open job left to the next test, another encoder, the sample."""

import json
from collections.abc import Iterator
from contextlib import suppress

import pytest
import structlog

from engram.composition.container import Application
from engram.context.errors import NotFoundError
from engram.providers.embedder import Embedder, load_embedder
from engram.wings.local import sample
from tests.conftest import Ingest
from tests.support import encoder


@pytest.fixture(autouse=True, scope="package")
def short_tracebacks() -> Iterator[None]:
    """Failures that tests provoke are logged without the values of variables, which take seconds to print."""
    renderer = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[structlog.processors.add_log_level, renderer])
    yield
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def no_open_jobs(application: Application) -> Iterator[None]:
    """A job that a test leaves open would be worked on by the next one."""
    yield
    with application.database.write() as writer:
        writer.execute("DELETE FROM job WHERE status IN ('receiving', 'queued', 'running')")


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Embedder:
    """Another real encoder of the same dimension."""
    folder = encoder.shallow(tmp_path_factory.mktemp("models") / "shallow")
    cache = tmp_path_factory.mktemp("cache")
    return encoder.MemoisingEncoder(load_embedder(str(folder), "onnx", cache, 1, 64), cache / "vectors.sqlite")


@pytest.fixture
def corpus(application: Application, ingest: Ingest, collection: str) -> Iterator[str]:
    """A collection of all passages of the sample."""
    rows = [json.loads(line) for line in sample.corpus().splitlines()]
    passages = [{"id": row["_id"], "title": row["title"], "text": row["text"]} for row in rows]
    assert ingest(*passages)["created"] == len(passages)
    yield collection
    with suppress(NotFoundError):
        application.corpus.ingest.delete_collection(application.auth.access.scope(collection))
