"""Jobs: opened, claimed by one worker at a time under a lease, counted, and closed.

A claim is a row's ``claimant`` and its ``due_at``, the end of a lease: while the claimant lives it puts the end off
(``keep``), and whatever ends it (a kill, a hang, a lost machine) leaves a lease that runs out. Whoever writes for a
job says so in the same transaction (``advance``, ``report``, ``close``), which finds out a claimant that was
overtaken and undoes what it did.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from sqlalchemy.exc import IntegrityError

from app.storage.database import Reader, Writer


@dataclass(frozen=True, slots=True)
class Job:
    """A job and how far it got.

    Attributes:
        number: the order in which jobs came.
        lane: jobs of one lane of a collection are done one by one, in their order.
        payload: what is asked for.
        status: receiving (what it is about is still arriving), queued, running, succeeded, failed or cancelled.
        stage: what a job that has several stages is at.
        received, created, updated, unchanged, rejected: how much there is to do, and what became of it, in the
            kind's own unit: lines, passages, verdicts.
        position: the id after which a job that takes rows in order goes on.
        result: what a job that succeeded has to say beyond counts.
        attempts: failed tries since it last came forward.
        error: of the last failed try.
        claimant: of a running job: who has it in hand.
    """

    collection_id: int
    collection: str
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
        """How much is not done."""
        return self.received - self.created - self.updated - self.unchanged - self.rejected


_COLUMNS = """
    job.collection_id, c.name AS collection, job.id, job.number, job.kind, job.lane, job.payload, job.status,
    job.stage, job.received, job.created, job.updated, job.unchanged, job.rejected, job.position, job.result,
    job.attempts, job.error, job.claimant, job.cancel_requested_at, job.created_at, job.updated_at, job.finished_at
"""
_JOB = "job.collection_id = %(collection)s AND job.id = %(job)s"
_CLAIMED = f"{_JOB} AND job.claimant = %(claimant)s AND job.status = 'running'"
_OPEN = "status IN ('queued', 'running')"


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
        WHERE {_JOB} AND status = 'receiving'
        """,
        {"collection": collection_id, "job": job, "received": received, "rejected": rejected},
    )


def release(writer: Writer, collection_id: int, job: UUID) -> None:
    """All has arrived: let a worker begin."""
    writer.execute(
        f"""
        UPDATE job SET status = 'queued', due_at = now(), updated_at = now() WHERE {_JOB} AND status = 'receiving'
        """,
        {"collection": collection_id, "job": job},
    )


def discard(writer: Writer, collection_id: int, job: UUID) -> None:
    """Forget a job that did not arrive whole."""
    writer.execute(f"DELETE FROM job WHERE {_JOB}", {"collection": collection_id, "job": job})


def discard_abandoned(writer: Writer, after_seconds: float) -> int:
    """Forget jobs of which nothing has arrived for so long; how many there were."""
    return writer.execute(
        "DELETE FROM job WHERE status = 'receiving' AND updated_at < now() - make_interval(secs => %(seconds)s)",
        {"seconds": after_seconds},
    )


def claim(
    writer: Writer,
    claimant: UUID,
    lanes: Sequence[str],
    lease_seconds: float,
    collection_id: int | None = None,
) -> Job | None:
    """Take the next job of these lanes in hand, whose lease ``keep`` puts off; None if there is none.

    Of each lane of a collection only the first open job is taken, so that its jobs are done in turn. Of several
    collections, whichever was served least recently comes first, where a job that came later than that counts as of
    then: none waits for all jobs of another.

    What ``claimant`` has in hand in these lanes already it gets again: a worker that a server failed asks anew. A
    claim that takes over another's whose lease ran out counts as a failed try, since the job may be what ended it.

    Args:
        writer: of this statement alone.
        collection_id: jobs of this collection only.
    """
    try:
        row = writer.row(
            f"""
            WITH head AS (
                SELECT job.collection_id, job.id, job.status = 'running' AND job.claimant <> %(claimant)s AS lost
                FROM job
                WHERE job.{_OPEN} AND job.lane = ANY(%(lanes)s)
                  AND (job.due_at <= now() OR job.claimant = %(claimant)s)
                  AND (%(collection)s::bigint IS NULL OR job.collection_id = %(collection)s)
                  AND NOT EXISTS (
                      SELECT FROM job other
                      WHERE other.collection_id = job.collection_id AND other.lane = job.lane
                        AND other.{_OPEN} AND other.id <> job.id
                        AND (other.status = 'running' OR job.status = 'queued' AND other.number < job.number)
                  )
                ORDER BY greatest(job.created_at, (
                    SELECT max(served.claimed_at) FROM job served
                    WHERE served.collection_id = job.collection_id AND served.lane = job.lane
                )), job.number
                LIMIT 1 FOR UPDATE OF job SKIP LOCKED
            )
            UPDATE job SET status = 'running', claimant = %(claimant)s, claimed_at = clock_timestamp(),
                due_at = now() + make_interval(secs => %(lease)s), updated_at = now(),
                attempts = job.attempts + head.lost::int,
                error = CASE WHEN head.lost THEN 'Its worker was lost.' ELSE job.error END
            FROM head CROSS JOIN LATERAL (SELECT * FROM collection WHERE id = head.collection_id OFFSET 0) AS c
            WHERE job.collection_id = head.collection_id AND job.id = head.id
            RETURNING {_COLUMNS}
            """,
            {
                "claimant": claimant,
                "lanes": list(lanes),
                "lease": lease_seconds,
                "collection": collection_id,
            },
        )
    except IntegrityError:  # of two claims that did not see each other, this one came second
        return None
    return _job(row)


def keep(writer: Writer, job: Job, lease_seconds: float) -> bool | None:
    """Put off the end of the lease; whether the job is to be cancelled, or None if it is the claimant's no more."""
    row = writer.row(
        f"""
        UPDATE job SET due_at = now() + make_interval(secs => %(lease)s) WHERE {_CLAIMED}
        RETURNING cancel_requested_at IS NOT NULL AS cancelled
        """,
        _of(job) | {"lease": lease_seconds},
    )
    return None if row is None else row.cancelled


def advance(
    writer: Writer,
    job: Job,
    *,
    created: int = 0,
    updated: int = 0,
    unchanged: int = 0,
    position: int | None = None,
) -> bool | None:
    """Count what the transaction does; as ``keep``, whether to go on."""
    row = writer.row(
        f"""
        UPDATE job SET created = created + %(created)s, updated = updated + %(updated)s,
            unchanged = unchanged + %(unchanged)s,
            received = greatest(received, created + updated + unchanged + rejected
                                          + %(created)s + %(updated)s + %(unchanged)s),
            position = coalesce(%(position)s::bigint, position), attempts = 0, error = NULL, updated_at = now()
        WHERE {_CLAIMED} RETURNING cancel_requested_at IS NOT NULL AS cancelled
        """,
        _of(job) | {"created": created, "updated": updated, "unchanged": unchanged, "position": position},
    )
    return None if row is None else row.cancelled


def report(
    writer: Writer,
    job: Job,
    *,
    received: int,
    updated: int,
    unchanged: int = 0,
    stage: str | None = None,
    kept: bool = True,
) -> bool | None:
    """Say how many of so many are done with, in this stage; as ``keep``, whether to go on.

    Args:
        kept: the next try goes on from there, so that failed ones are counted anew.
    """
    row = writer.row(
        f"""
        UPDATE job SET received = %(received)s, updated = %(updated)s, unchanged = %(unchanged)s, stage = %(stage)s,
            attempts = CASE WHEN %(kept)s THEN 0 ELSE attempts END,
            error = CASE WHEN %(kept)s THEN NULL ELSE error END, updated_at = now()
        WHERE {_CLAIMED} RETURNING cancel_requested_at IS NOT NULL AS cancelled
        """,
        _of(job) | {"received": received, "updated": updated, "unchanged": unchanged, "stage": stage, "kept": kept},
    )
    return None if row is None else row.cancelled


def close(
    writer: Writer, job: Job, status: str, *, error: str | None = None, result: Mapping[str, Any] | None = None
) -> bool:
    """End the job; False, and nothing changes, if it is the claimant's no more."""
    return (
        writer.execute(
            f"""
            UPDATE job SET status = %(status)s, error = %(error)s, result = %(result)s, claimant = NULL,
                updated_at = now(), finished_at = now()
            WHERE {_CLAIMED}
            """,
            _of(job)
            | {"status": status, "error": error, "result": None if result is None else Jsonb(dict(result))},
        )
        > 0
    )


def attempts(reader: Reader, job: Job) -> int | None:
    """Failed tries since the job last came forward; None if it is the claimant's no more."""
    row = reader.row(f"SELECT attempts FROM job WHERE {_CLAIMED}", _of(job))
    return None if row is None else row.attempts


def put_back(
    writer: Writer, job: Job, *, after_seconds: float = 0.0, error: str | None = None, tried: bool = False
) -> bool:
    """Let go of the job, to be claimed again after so long; False if it is the claimant's no more.

    Args:
        error: what stopped it; None leaves what the last try left.
        tried: it counts as a failed try.
    """
    return (
        writer.execute(
            f"""
            UPDATE job SET status = 'queued', claimant = NULL, attempts = attempts + %(tried)s,
                error = coalesce(%(error)s, error), due_at = now() + make_interval(secs => %(seconds)s),
                updated_at = now()
            WHERE {_CLAIMED}
            """,
            _of(job) | {"tried": int(tried), "error": error, "seconds": after_seconds},
        )
        > 0
    )


def request_cancel(writer: Writer, collection_id: int, job: UUID) -> Job | None:
    """Cancel the job: at once if it waits; one that runs is asked to end. The job as it is then, or None.

    One that is cancelled or asked already, or is over, stays as it is.
    """
    row = writer.row(
        f"""
        UPDATE job SET cancel_requested_at = now(), updated_at = now(),
            status = CASE status WHEN 'queued' THEN 'cancelled' ELSE status END,
            finished_at = CASE status WHEN 'queued' THEN now() END
        FROM collection c WHERE {_JOB} AND c.id = job.collection_id AND job.{_OPEN}
          AND job.cancel_requested_at IS NULL
        RETURNING {_COLUMNS}
        """,
        {"collection": collection_id, "job": job},
    )
    return find(writer, collection_id, job) if row is None else _job(row)


def find(reader: Reader, collection_id: int, job: UUID) -> Job | None:
    """The job, or None."""
    row = reader.row(
        f"SELECT {_COLUMNS} FROM job JOIN collection c ON c.id = job.collection_id WHERE {_JOB}",
        {"collection": collection_id, "job": job},
    )
    return _job(row)


def open_of_kind(reader: Reader, collection_id: int, kind: str) -> Job | None:
    """The first of the collection's jobs of this kind that is not over, if there is one."""
    row = reader.row(
        f"""
        SELECT {_COLUMNS} FROM job JOIN collection c ON c.id = job.collection_id
        WHERE job.collection_id = %(collection)s AND job.kind = %(kind)s AND job.{_OPEN} ORDER BY job.number LIMIT 1
        """,
        {"collection": collection_id, "kind": kind},
    )
    return _job(row)


def page(reader: Reader, collection_id: int, before: int | None, limit: int) -> list[Job]:
    """The collection's jobs, the latest first, those before the number ``before``."""
    rows = reader.rows(
        f"""
        SELECT {_COLUMNS} FROM job JOIN collection c ON c.id = job.collection_id
        WHERE job.collection_id = %(collection)s AND job.number < %(before)s
        ORDER BY job.number DESC LIMIT %(limit)s
        """,
        {"collection": collection_id, "before": 2**63 - 1 if before is None else before, "limit": limit},
    )
    return [Job(**row._mapping) for row in rows]


def ahead(reader: Reader, collection_id: int, queued: Sequence[UUID]) -> dict[UUID, int]:
    """Of each of these jobs that waits: how many of the collection's are done before it, one in hand included."""
    rows = reader.rows(
        f"""
        SELECT job.id, (
            SELECT count(*) FROM job other
            WHERE other.collection_id = job.collection_id AND other.lane = job.lane AND other.{_OPEN}
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


def _job(row: Any) -> Job | None:
    return None if row is None else Job(**row._mapping)


def _of(job: Job) -> dict[str, object]:
    return {"collection": job.collection_id, "job": job.id, "claimant": job.claimant}
