"""Jobs as whoever asks for them knows them: opened, looked at, cancelled, removed. Workers have ``claims``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import CLOCK


@dataclass(frozen=True, slots=True)
class Job:
    """A job and how far it got.

    Attributes:
        tenant: whose collection it is.
        number: the order in which jobs came.
        lane: jobs of one lane of a collection are done one by one, in their order.
        payload: what is asked for.
        status: receiving (what it is about is still arriving), queued, running, succeeded, failed or cancelled.
        stage: what a job that has several stages is at.
        received, created, updated, unchanged, rejected: how much there is to do, and what became of it, in the
            kind's own unit: lines, passages, verdicts.
        position: the id after which a job that takes rows in order goes on.
        result: what a job has to say beyond counts, also of what was done in another way than configured.
        attempts: failed tries since it last came forward.
        error: of the last failed try.
        claimant: of a running job: who has it in hand.
    """

    collection_id: int
    collection: str
    tenant: str
    id: UUID
    number: int
    kind: str
    lane: str
    payload: Mapping[str, Any]
    status: str
    stage: str | None
    received: int
    created: int
    updated: int
    unchanged: int
    rejected: int
    position: int
    result: Mapping[str, Any] | None
    attempts: int
    error: str | None
    claimant: UUID | None
    cancel_requested_at: datetime | None
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None

    @property
    def waiting(self) -> int:
        """Number of rows that are not done."""
        return self.received - self.created - self.updated - self.unchanged - self.rejected


COLUMNS = """
    job.collection_id, c.name AS collection, c.tenant, job.id, job.number, job.kind, job.lane, job.payload,
    job.status, job.stage, job.received, job.created, job.updated, job.unchanged, job.rejected, job.position,
    job.result, job.attempts, job.error, job.claimant, job.cancel_requested_at, job.created_at, job.updated_at,
    job.finished_at
"""
"""Of ``job`` and its collection ``c``: what ``job_of`` takes."""
JOB = "job.collection_id = %(collection)s AND job.id = %(job)s"
OPEN_JOB = "status IN ('queued', 'running')"


def add(
    writer: Writer,
    collection_id: int,
    job: UUID,
    *,
    kind: str,
    lane: str,
    single: bool = False,
    payload: Mapping[str, Any],
    received: int = 0,
    updated: int = 0,
    receiving: bool = False,
) -> bool:
    """Queue a job; False, and nothing is queued, if one of its kind is open and the kind is ``single``.

    Args:
        receiving: it is not ready before ``release``.
    """
    return (
        writer.execute(
            """
            INSERT INTO job (collection_id, id, kind, lane, single, payload, status, received, updated)
            VALUES (%(collection)s, %(job)s, %(kind)s, %(lane)s, %(single)s, %(payload)s, %(status)s, %(received)s,
                    %(updated)s)
            ON CONFLICT DO NOTHING
            """,
            {
                "collection": collection_id,
                "job": job,
                "kind": kind,
                "lane": lane,
                "single": single,
                "payload": Jsonb(dict(payload)),
                "status": "receiving" if receiving else "queued",
                "received": received,
                "updated": updated,
            },
        )
        > 0
    )


def receive(writer: Writer, collection_id: int, job: UUID, *, received: int, rejected: int) -> None:
    """Count what has arrived of a job that is still receiving."""
    writer.execute(
        f"""
        UPDATE job SET received = received + %(received)s, rejected = rejected + %(rejected)s, updated_at = now()
        WHERE {JOB} AND status = 'receiving'
        """,
        {"collection": collection_id, "job": job, "received": received, "rejected": rejected},
    )


def release(writer: Writer, collection_id: int, job: UUID) -> None:
    """All has arrived: let a worker begin."""
    writer.execute(
        f"""
        UPDATE job SET status = 'queued', due_at = now(), updated_at = now() WHERE {JOB} AND status = 'receiving'
        """,
        {"collection": collection_id, "job": job},
    )


def discard(writer: Writer, collection_id: int, job: UUID) -> None:
    """Forget a job that did not arrive whole."""
    writer.execute(f"DELETE FROM job WHERE {JOB}", {"collection": collection_id, "job": job})


def discard_abandoned(writer: Writer, after_seconds: float) -> int:
    """Forget jobs of which nothing has arrived for so long; how many there were."""
    return writer.execute(
        """
        DELETE FROM job WHERE status = 'receiving' AND updated_at < now() - make_interval(secs => %(seconds)s)
          AND (SELECT move IS NULL FROM collection WHERE id = job.collection_id)
        """,
        {"seconds": after_seconds},
    )


def request_cancel(writer: Writer, collection_id: int, job: UUID) -> Job | None:
    """Cancel a queued job at once; ask a running one to end.

    Any other job (receiving, over, already asked) stays as it is.

    Returns:
        The job afterwards; None if there is no such job.
    """
    row = writer.row(
        f"""
        UPDATE job SET cancel_requested_at = now(), updated_at = now(),
            status = CASE WHEN status = 'queued' THEN 'cancelled' ELSE status END,
            finished_at = CASE WHEN status = 'queued' THEN clock.moment END
        FROM collection c CROSS JOIN {CLOCK} WHERE {JOB} AND c.id = job.collection_id AND job.{OPEN_JOB}
          AND job.cancel_requested_at IS NULL
        RETURNING {COLUMNS}
        """,
        {"collection": collection_id, "job": job},
    )
    return find(writer, collection_id, job) if row is None else job_of(row)


def cancel_all(writer: Writer, collection_id: int) -> None:
    """End all of a collection's jobs, as it was deleted; one that runs hears of it with its next transaction."""
    writer.execute(
        f"""
        UPDATE job SET cancel_requested_at = coalesce(cancel_requested_at, clock.moment), updated_at = now(),
            finished_at = now(), status = 'cancelled', claimant = NULL
        FROM {CLOCK} WHERE collection_id = %(collection)s AND {OPEN_JOB}
        """,
        {"collection": collection_id},
    )


def find(reader: Reader, collection_id: int, job: UUID) -> Job | None:
    """The job, or None."""
    row = reader.row(
        f"SELECT {COLUMNS} FROM job JOIN collection c ON c.id = job.collection_id WHERE {JOB}",
        {"collection": collection_id, "job": job},
    )
    return job_of(row)


def open_of_kind(reader: Reader, collection_id: int, kind: str) -> Job | None:
    """The first of the collection's jobs of this kind that is not over, if there is one."""
    row = reader.row(
        f"""
        SELECT {COLUMNS} FROM job JOIN collection c ON c.id = job.collection_id
        WHERE job.collection_id = %(collection)s AND job.kind = %(kind)s AND job.{OPEN_JOB}
        ORDER BY job.number LIMIT 1
        """,
        {"collection": collection_id, "kind": kind},
    )
    return job_of(row)


def page(reader: Reader, collection_id: int, before: int | None, limit: int) -> list[Job]:
    """The collection's jobs, the latest first, those before the number ``before``."""
    rows = reader.rows(
        f"""
        SELECT {COLUMNS} FROM job JOIN collection c ON c.id = job.collection_id
        WHERE job.collection_id = %(collection)s AND job.number < %(before)s
        ORDER BY job.number DESC LIMIT %(limit)s
        """,
        {"collection": collection_id, "before": 2**63 - 1 if before is None else before, "limit": limit},
    )
    return [Job(**row._asdict()) for row in rows]


def count_ahead(reader: Reader, collection_id: int, queued: Sequence[UUID]) -> dict[UUID, int]:
    """Count for each queued job the jobs of the collection before it, a running one included."""
    rows = reader.rows(
        f"""
        SELECT job.id, (
            SELECT count(*) FROM job other
            WHERE other.collection_id = job.collection_id AND other.lane = job.lane AND other.{OPEN_JOB}
              AND other.id <> job.id AND (other.status = 'running' OR other.number < job.number)
        ) AS ahead
        FROM job WHERE job.collection_id = %(collection)s AND job.id = ANY(%(jobs)s) AND job.status = 'queued'
        """,
        {"collection": collection_id, "jobs": list(queued)},
    )
    return {row.id: row.ahead for row in rows}


def delete_ended(writer: Writer, moment: datetime, limit: int) -> int:
    """Remove jobs that ended before the moment, at most ``limit``, with what their kinds keep of them; how many."""
    return writer.execute(
        """
        DELETE FROM job WHERE (collection_id, id) IN (
            SELECT collection_id, id FROM job WHERE finished_at < %(moment)s LIMIT %(limit)s
        )
        """,
        {"moment": moment, "limit": limit},
    )


def job_of(row: Any) -> Job | None:
    """The job that a row of ``COLUMNS`` is, if there is one."""
    return None if row is None else Job(**row._asdict())
