"""Jobs. Of an ingest, accepted lines wait in Postgres and leave in the transaction that ingests them; re-keying has
its own module for what it stages, and revoking one for what it is about."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from app.core.key_text import KeyBuilding
from app.storage.database import Reader, Writer

ABANDONED_AFTER = "10 minutes"


@dataclass(frozen=True, slots=True)
class Job:
    """A job and how far it got.

    Attributes:
        key_building: of a re-key job: what base keys shall be made of; None: another job.
        received, created, updated, unchanged, rejected: lines of an ingest; passages of a re-key job; verdicts of a
            job that revokes.
        revocation: of a job that revokes: which verdicts; None: another job.
    """

    collection_id: int
    collection: str
    id: UUID
    key_building: KeyBuilding | None
    status: str
    received: int
    created: int
    updated: int
    unchanged: int
    rejected: int
    attempts: int
    error: str | None
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    revocation: dict[str, Any] | None


_SELECT = """
    SELECT job.collection_id, c.name, job.id, job.key_building, job.status, job.received, job.created, job.updated,
           job.unchanged, job.rejected, job.attempts, job.error, job.created_at, job.updated_at, job.finished_at,
           job.revocation
    FROM ingest_job job JOIN collection c ON c.id = job.collection_id
"""


def open_job(writer: Writer, collection_id: int, job: UUID) -> None:
    """Begin a job that is still receiving its lines."""
    writer.execute(
        "INSERT INTO ingest_job (collection_id, id) VALUES (%(collection)s, %(job)s)",
        {"collection": collection_id, "job": job},
    )


def open_rekey(writer: Writer, collection_id: int, job: UUID, building: KeyBuilding) -> bool:
    """Queue a re-key job; False if the collection has one that is still open."""
    return (
        writer.execute(
            """
            INSERT INTO ingest_job (collection_id, id, key_building, status)
            VALUES (%(collection)s, %(job)s, %(building)s, 'queued') ON CONFLICT DO NOTHING
            """,
            {"collection": collection_id, "job": job, "building": building},
        )
        > 0
    )


def open_rekey_job(reader: Reader, collection_id: int) -> Job | None:
    """The collection's re-key job that is still open, if there is one."""
    row = reader.row(
        f"""
        {_SELECT} WHERE job.collection_id = %(collection)s AND job.key_building IS NOT NULL
          AND job.status IN ('queued', 'running')
        """,
        {"collection": collection_id},
    )
    return None if row is None else Job(*row)


def add_lines(
    writer: Writer,
    collection_id: int,
    job: UUID,
    lines: Sequence[tuple[int, Mapping[str, Any]]],
    errors: Sequence[tuple[int, str]],
) -> None:
    """Stage accepted lines and record rejected ones with their reasons."""
    parameters = {"collection": collection_id, "job": job}
    if lines:
        writer.execute(
            """
            INSERT INTO ingest_line (collection_id, job_id, line, passage)
            SELECT %(collection)s, %(job)s, row.* FROM unnest(%(lines)s::bigint[], %(passages)s::jsonb[]) AS row
            """,
            parameters
            | {"lines": [line for line, _ in lines], "passages": [Jsonb(dict(body)) for _, body in lines]},
        )
    if errors:
        writer.execute(
            """
            INSERT INTO ingest_error (collection_id, job_id, line, reason)
            SELECT %(collection)s, %(job)s, row.* FROM unnest(%(lines)s::bigint[], %(reasons)s::text[]) AS row
            """,
            parameters | {"lines": [line for line, _ in errors], "reasons": [reason for _, reason in errors]},
        )
    writer.execute(
        """
        UPDATE ingest_job SET received = received + %(received)s, rejected = rejected + %(rejected)s,
            updated_at = now()
        WHERE collection_id = %(collection)s AND id = %(job)s
        """,
        parameters | {"received": len(lines) + len(errors), "rejected": len(errors)},
    )


def release(writer: Writer, collection_id: int, job: UUID) -> None:
    """All lines have arrived: let a worker begin."""
    writer.execute(
        """
        UPDATE ingest_job SET status = 'queued', updated_at = now()
        WHERE collection_id = %(collection)s AND id = %(job)s
        """,
        {"collection": collection_id, "job": job},
    )


def discard(writer: Writer, collection_id: int, job: UUID) -> None:
    """Forget a job whose lines did not all arrive."""
    writer.execute(
        "DELETE FROM ingest_job WHERE collection_id = %(collection)s AND id = %(job)s",
        {"collection": collection_id, "job": job},
    )


def discard_abandoned(writer: Writer) -> int:
    """Forget jobs whose sender vanished with the API process that was receiving them."""
    return writer.execute(
        "DELETE FROM ingest_job WHERE status = 'receiving' AND updated_at < now() - %(age)s::interval",
        {"age": ABANDONED_AFTER},
    )


def find(reader: Reader, collection_id: int, job: UUID) -> Job | None:
    """The job, or None."""
    row = reader.row(
        f"{_SELECT} WHERE job.collection_id = %(collection)s AND job.id = %(job)s",
        {"collection": collection_id, "job": job},
    )
    return None if row is None else Job(*row)


def errors(reader: Reader, collection_id: int, job: UUID, after: int, limit: int) -> list[tuple[int, str]]:
    """(line, reason) of rejected lines, in line order, those after line ``after``."""
    rows = reader.rows(
        """
        SELECT line, reason FROM ingest_error
        WHERE collection_id = %(collection)s AND job_id = %(job)s AND line > %(after)s
        ORDER BY line LIMIT %(limit)s
        """,
        {"collection": collection_id, "job": job, "after": after, "limit": limit},
    )
    return [(row[0], row[1]) for row in rows]


def ready(reader: Reader, *, revoking: bool = False) -> list[Job]:
    """Jobs for a worker to do, oldest first: those that revoke verdicts, or all others."""
    rows = reader.rows(
        f"""
        {_SELECT} WHERE job.status IN ('queued', 'running') AND (job.revocation IS NOT NULL) = %(revoking)s
        ORDER BY job.created_at
        """,
        {"revoking": revoking},
    )
    return [Job(*row) for row in rows]


def next_lines(reader: Reader, job: Job, after: int, limit: int) -> list[tuple[int, dict[str, Any]]]:
    """The next staged lines after line ``after``, in line order."""
    rows = reader.rows(
        """
        SELECT line, passage FROM ingest_line
        WHERE collection_id = %(collection)s AND job_id = %(job)s AND line > %(after)s
        ORDER BY line LIMIT %(limit)s
        """,
        {"collection": job.collection_id, "job": job.id, "after": after, "limit": limit},
    )
    return [(row[0], row[1]) for row in rows]


def advance(writer: Writer, job: Job, lines: Sequence[int], *, created: int, updated: int, unchanged: int) -> None:
    """Take ingested lines off the job, in the transaction that ingested them."""
    parameters = {
        "collection": job.collection_id,
        "job": job.id,
        "lines": list(lines),
        "created": created,
        "updated": updated,
        "unchanged": unchanged,
    }
    writer.execute(
        """
        DELETE FROM ingest_line
        WHERE collection_id = %(collection)s AND job_id = %(job)s AND line = ANY(%(lines)s)
        """,
        parameters,
    )
    writer.execute(
        """
        UPDATE ingest_job SET status = 'running', created = created + %(created)s,
            updated = updated + %(updated)s, unchanged = unchanged + %(unchanged)s,
            attempts = 0, error = NULL, updated_at = now()
        WHERE collection_id = %(collection)s AND id = %(job)s
        """,
        parameters,
    )


def report(writer: Writer, job: Job, *, passages: int, updated: int = 0, unchanged: int = 0) -> bool:
    """Say how many of so many passages a re-key job has done with; False, and nothing is said, if it is closed."""
    return (
        writer.execute(
            """
            UPDATE ingest_job SET status = 'running', received = %(passages)s, updated = %(updated)s,
                unchanged = %(unchanged)s, attempts = 0, error = NULL, updated_at = now()
            WHERE collection_id = %(collection)s AND id = %(job)s AND status IN ('queued', 'running')
            """,
            {
                "collection": job.collection_id,
                "job": job.id,
                "passages": passages,
                "updated": updated,
                "unchanged": unchanged,
            },
        )
        > 0
    )


def finish(writer: Writer, job: Job, error: str | None = None) -> None:
    """Close the job: it succeeded, or failed for good with ``error``, and what is still staged for it is let go."""
    writer.execute(
        """
        UPDATE ingest_job SET status = %(status)s, error = %(error)s, updated_at = now(), finished_at = now()
        WHERE collection_id = %(collection)s AND id = %(job)s
        """,
        {
            "collection": job.collection_id,
            "job": job.id,
            "status": "succeeded" if error is None else "failed",
            "error": error,
        },
    )
    for staged in ("ingest_line", "staged_key"):
        writer.execute(
            f"DELETE FROM {staged} WHERE collection_id = %(collection)s AND job_id = %(job)s",
            {"collection": job.collection_id, "job": job.id},
        )


def record_failure(writer: Writer, job: Job, error: str) -> int:
    """Note a failed try; how many there were since the last batch that went well."""
    attempts: int | None = writer.scalar(
        """
        UPDATE ingest_job SET attempts = attempts + 1, error = %(error)s, updated_at = now()
        WHERE collection_id = %(collection)s AND id = %(job)s RETURNING attempts
        """,
        {"collection": job.collection_id, "job": job.id, "error": error},
    )
    return attempts or 0
