"""Jobs that revoke verdicts: which ones a job is about, and how far it is."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from app.storage.database import Reader, Writer
from app.storage.jobs.jobs import Job


@dataclass(frozen=True, slots=True)
class Criteria:
    """Which verdicts: of this judge, received from ``since`` on and before ``before``; None: whatever it is."""

    judge: str | None = None
    since: datetime | None = None
    before: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        """As a job keeps it; what is None is left out."""
        said = {"judge": self.judge, "from": _time(self.since), "to": _time(self.before)}
        return {name: value for name, value in said.items() if value is not None}


_MATCHING = """
    collection_id = %(collection)s AND status <> 'revoked' AND id <= %(last)s
    AND (%(judge)s::text IS NULL OR judge = %(judge)s)
    AND (%(from)s::timestamptz IS NULL OR received_at >= %(from)s)
    AND (%(to)s::timestamptz IS NULL OR received_at < %(to)s)
"""


def open_job(writer: Writer, collection_id: int, job: UUID, criteria: Criteria) -> None:
    """Queue a job that revokes all verdicts accepted so far that match; those that wait are revoked at once."""
    said = criteria.as_json()
    last = writer.scalar(
        "SELECT coalesce(max(id), 0) FROM feedback_event WHERE collection_id = %(collection)s",
        {"collection": collection_id},
    )
    parameters = {"collection": collection_id, "job": job, "last": last} | _said(said)
    # Locked in order, as two such requests may meet.
    at_once = writer.execute(
        f"""
        WITH waiting AS (
            SELECT id FROM feedback_event WHERE {_MATCHING} AND status IN ('pending', 'parked')
            ORDER BY id FOR UPDATE
        )
        UPDATE feedback_event event SET status = 'revoked', revoked_at = now() FROM waiting
        WHERE event.collection_id = %(collection)s AND event.id = waiting.id
        """,
        parameters,
    )
    left = writer.scalar(f"SELECT count(*) FROM feedback_event WHERE {_MATCHING}", parameters)
    writer.execute(
        """
        INSERT INTO ingest_job (collection_id, id, revocation, status, received, updated)
        VALUES (%(collection)s, %(job)s, %(revocation)s, 'queued', %(received)s, %(updated)s)
        """,
        parameters
        | {
            "revocation": Jsonb(said | {"last": last}),
            "received": at_once + left,
            "updated": at_once,
        },
    )


def next_events(reader: Reader, job: Job, limit: int) -> list[int]:
    """The next verdicts that the job has to revoke, in order of acceptance."""
    said = job.revocation or {}
    rows = reader.rows(
        f"SELECT id FROM feedback_event WHERE {_MATCHING} AND id > %(after)s ORDER BY id LIMIT %(limit)s",
        {"collection": job.collection_id, "last": said["last"], "after": said.get("after", 0), "limit": limit}
        | _said(said),
    )
    return [row[0] for row in rows]


def advance(writer: Writer, job: Job, revoked: int, last: int) -> None:
    """Count verdicts, in the transaction that revokes them; the job goes on after the event ``last``."""
    writer.execute(
        """
        UPDATE ingest_job SET status = 'running', updated = updated + %(revoked)s,
            received = greatest(received, updated + %(revoked)s), attempts = 0, error = NULL, updated_at = now(),
            revocation = revocation || jsonb_build_object('after', %(last)s::bigint)
        WHERE collection_id = %(collection)s AND id = %(job)s
        """,
        {"collection": job.collection_id, "job": job.id, "revoked": revoked, "last": last},
    )


def settle(writer: Writer, job: Job) -> None:
    """Count what others revoked meanwhile; nothing is left for this job."""
    writer.execute(
        """
        UPDATE ingest_job SET unchanged = received - updated WHERE collection_id = %(collection)s AND id = %(job)s
        """,
        {"collection": job.collection_id, "job": job.id},
    )


def _said(said: dict[str, Any]) -> dict[str, Any]:
    return {name: said.get(name) for name in ("judge", "from", "to")}


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()
