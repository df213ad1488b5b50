"""What all services' tests need: quiet failures, and no open job left to the next test."""

from collections.abc import Iterator

import pytest
import structlog

from app.composition import Application


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
