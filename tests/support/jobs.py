"""Doing jobs in a test's own thread, with other handlers than the application's where it wants some."""

from collections.abc import Callable
from uuid import UUID

from engram.composition.container import Application
from engram.services.auth.scope import Scope
from engram.services.jobs.job_runner import Runner
from engram.services.jobs.work import JobHandler
from tests.support.processes import eventually

NOT_UNTIL_MADE_DUE = 3600.0
"""Seconds before a job is tried again: longer than any test."""


def runner(application: Application, *, lease_seconds: float = 60.0, **instead: JobHandler) -> Runner:
    """The application's, with these handlers instead of those of the kinds so called."""
    handlers = {kind: instead.get(kind.name, handler) for kind, handler in application.jobs.handlers.items()}
    return Runner(application.database, handlers, lease_seconds=lease_seconds, retry_seconds=NOT_UNTIL_MADE_DUE)


def run_to_end(application: Application, scope: Scope, job_id: UUID) -> None:
    """Have this job done here, or wait for the worker that the test started and that has it in hand."""
    application.jobs.runner.run_ready()
    eventually(lambda: application.jobs.jobs.job(scope, job_id).status != "running", "the end of the job")


def make_due(application: Application) -> None:
    """Let time pass: whatever waits for its next try is due, and the leases of workers that are gone ran out."""
    with application.database.write() as writer:
        writer.execute("UPDATE job SET due_at = now() WHERE status IN ('queued', 'running')")


def run_again(application: Application, runner: Runner, should_stop: Callable[[], bool] = lambda: False) -> int:
    """Have every open job done, or tried once more."""
    make_due(application)
    return runner.run_ready(should_stop)
