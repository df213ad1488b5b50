"""What all services' tests need: quiet failures, no open job left to the next test, and another encoder."""

from collections.abc import Iterator

import pytest
import structlog

from engram.composition.container import Application
from engram.providers.embedder import Embedder, load_embedder
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
