"""Backlog of verdicts and jobs, and its age."""

from dataclasses import dataclass

from engram.storage.database import Reader
from engram.storage.jobs.jobs import OPEN_JOB


@dataclass(frozen=True, slots=True)
class Backlog:
    """Seconds that the oldest pending verdict and job have waited; None where nothing waits."""

    verdict_seconds: float | None
    job_seconds: float | None


def backlog(reader: Reader) -> Backlog:
    """Measure the backlog of all collections. A job counts from when it may be claimed."""
    row = reader.row(
        f"""
        SELECT
            (SELECT extract(epoch FROM clock_timestamp() - min(received_at))::float8
             FROM feedback_event WHERE status = 'pending') AS verdict,
            (SELECT extract(epoch FROM clock_timestamp() - min(due_at))::float8
             FROM job WHERE job.{OPEN_JOB} AND status = 'queued' AND due_at <= now()) AS job
        """
    )
    return Backlog(row.verdict, row.job)
