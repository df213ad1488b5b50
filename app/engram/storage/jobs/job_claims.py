"""Jobs in hand: claimed by one worker at a time under a lease, counted, and closed.

A claim is a row's ``claimant`` and its ``due_at``, the end of a lease: while the claimant lives it puts the end off
(``keep``), and whatever ends it (a kill, a hang, a lost machine) leaves a lease that runs out. Whoever writes for a
job says so in the same transaction (``advance``, ``report``, ``close``), which finds out a claimant that was
overtaken and undoes what it did.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb
from sqlalchemy.exc import IntegrityError

from engram.storage.database import Reader, Writer
from engram.storage.jobs.jobs import COLUMNS, JOB, OPEN_JOB, Job, job_of


@dataclass(frozen=True, slots=True)
class Turns:
    """Jobs that a worker has in hand, and tenants that it served before, so that tenants take turns.

    Attributes:
        in_hand: lane, tenant and collection of each of its jobs. It claims no other of this tenant in this lane.
        served: lane and tenant -> a number that is higher the later it was served; 0 for never.
    """

    in_hand: Sequence[tuple[str, str, int]] = ()
    served: Mapping[tuple[str, str], int] | None = None

    def parameters(self) -> dict[str, object]:
        """Return parameters of statements, column by column."""
        served = self.served or {}
        return {
            "busy_lanes": [lane for lane, _, _ in self.in_hand],
            "busy_tenants": [tenant for _, tenant, _ in self.in_hand],
            "busy_collections": [collection for _, _, collection in self.in_hand],
            "served_lanes": [lane for lane, _ in served],
            "served_tenants": [tenant for _, tenant in served],
            "served_turns": list(served.values()),
        }


ANY_TURN = Turns()
"""Of whoever does one job after the other."""


def _build_ready_condition(collection: str) -> str:
    """Whether a ``job`` could be claimed; the collection is an expression for its own."""
    return f"""
        job.{OPEN_JOB} AND job.lane = ANY(%(lanes)s) AND (job.due_at <= now() OR job.claimant = %(claimant)s)
        AND NOT EXISTS (
            SELECT FROM job other
            WHERE other.collection_id = {collection} AND other.lane = job.lane
              AND other.{OPEN_JOB} AND other.id <> job.id
              AND (other.status = 'running' OR job.status = 'queued' AND other.number < job.number)
        )
        AND NOT EXISTS (
            SELECT FROM unnest(%(busy_lanes)s::text[], %(busy_collections)s::bigint[]) AS busy(lane, id)
            WHERE busy.lane = job.lane AND busy.id = {collection}
        )
    """


def _turn(collection: str) -> str:
    return f"""
        greatest(job.created_at, (
            SELECT max(served.claimed_at) FROM job served
            WHERE served.collection_id = {collection} AND served.lane = job.lane
        )), job.number
    """


_RUNNING = """
    running AS MATERIALIZED (
        SELECT one.lane, c.tenant, count(*) AS jobs FROM job one JOIN collection c ON c.id = one.collection_id
        WHERE one.status = 'running' AND one.due_at > now() GROUP BY one.lane, c.tenant
    )
"""
_OWNER = """
    JOIN collection owner ON owner.id = job.collection_id AND owner.move IS NULL AND NOT EXISTS (
        SELECT FROM unnest(%(busy_lanes)s::text[], %(busy_tenants)s::text[]) AS busy(lane, tenant)
        WHERE busy.lane = job.lane AND busy.tenant = owner.tenant
    )
    LEFT JOIN running ON running.lane = job.lane AND running.tenant = owner.tenant
    LEFT JOIN unnest(%(served_lanes)s::text[], %(served_tenants)s::text[], %(served_turns)s::bigint[])
        AS served(lane, tenant, turn) ON served.lane = job.lane AND served.tenant = owner.tenant
"""
_TENANT_TURN = "coalesce(running.jobs, 0), coalesce(served.turn, 0),"
_COLLECTIONS_PER_CLAIM = 8
"""Collections in one look for a job."""
_CLAIMED = f"{JOB} AND job.claimant = %(claimant)s AND job.status = 'running'"


def claim(
    writer: Writer,
    claimant: UUID,
    lanes: Sequence[str],
    lease_seconds: float,
    collection_id: int | None = None,
    turns: Turns = ANY_TURN,
) -> Job | None:
    """Take the next job of these lanes in hand, whose lease ``keep`` puts off; None if there is none.

    Tenants take turns: first comes the one with the fewest running jobs in the lane, then the one that this worker
    served least recently. Of each lane of a collection only the first open job is taken, so that its jobs are done
    in turn. Of several collections, whichever was served least recently comes first, where a job that came later
    than that counts as of then: none waits for all jobs of another.

    What ``claimant`` has in hand in these lanes already it gets again: a worker that a server failed asks anew. A
    claim that takes over another's whose lease ran out counts as a failed try, since the job may be what ended it.

    Args:
        writer: of this statement alone.
        collection_id: jobs of this collection only.
        turns: what the worker has in hand, and whom it served before.
    """
    if not writer.distributed:
        return _take(writer, claimant, lanes, lease_seconds, collection_id, turns)
    # Rows can be locked on one node only: so the job is looked for without a lock, and taken in its collection.
    for own in [collection_id] if collection_id is not None else _list_at_turn(writer, claimant, lanes, turns):
        job = _take(writer, claimant, lanes, lease_seconds, own, turns, "%(collection)s::bigint")
        if job is not None:
            return job
    return None


def _list_at_turn(reader: Reader, claimant: UUID, lanes: Sequence[str], turns: Turns) -> list[int]:
    """Collections with a job that could be claimed, in their turn: several, as the first may be taken meanwhile."""
    rows = reader.rows(
        f"""
        WITH {_RUNNING}
        SELECT job.collection_id FROM job {_OWNER} WHERE {_build_ready_condition("job.collection_id")}
        ORDER BY {_TENANT_TURN} {_turn("job.collection_id")} LIMIT %(limit)s
        """,
        {"claimant": claimant, "lanes": list(lanes), "limit": _COLLECTIONS_PER_CLAIM, **turns.parameters()},
    )
    return list(dict.fromkeys(row.collection_id for row in rows))


def _take(
    writer: Writer,
    claimant: UUID,
    lanes: Sequence[str],
    lease_seconds: float,
    collection_id: int | None,
    turns: Turns,
    own: str = "job.collection_id",
) -> Job | None:
    """Take the next job, of one collection if it is given; ``own`` is an expression for its collection."""
    within = "(%(collection)s::bigint IS NULL OR job.collection_id = %(collection)s)"
    running, owner, tenant_turn = f"{_RUNNING},", _OWNER, _TENANT_TURN
    if own != "job.collection_id":
        within, running, owner, tenant_turn = f"job.collection_id = {own}", "", "", ""
    try:
        row = writer.row(
            f"""
            WITH {running} head AS (
                SELECT job.collection_id, job.id, job.status = 'running' AND job.claimant <> %(claimant)s AS lost
                FROM job {owner} WHERE {within} AND {_build_ready_condition(own)}
                ORDER BY {tenant_turn} {_turn(own)} LIMIT 1 FOR UPDATE OF job SKIP LOCKED
            )
            UPDATE job SET status = 'running', claimant = %(claimant)s, claimed_at = now(),
                due_at = now() + make_interval(secs => %(lease)s), updated_at = now(),
                attempts = job.attempts + head.lost::int,
                error = CASE WHEN head.lost THEN 'Its worker was lost.' ELSE job.error END
            FROM head CROSS JOIN LATERAL (SELECT * FROM collection WHERE id = head.collection_id OFFSET 0) AS c
            WHERE job.collection_id = {"head.collection_id" if own == "job.collection_id" else own}
              AND job.id = head.id
            RETURNING {COLUMNS}
            """,
            {
                "claimant": claimant,
                "lanes": list(lanes),
                "lease": lease_seconds,
                "collection": collection_id,
                **turns.parameters(),
            },
        )
    except IntegrityError:  # of two claims that did not see each other, this one came second
        return None
    return job_of(row)


def has_waiting_others(reader: Reader, job: Job) -> bool:
    """Whether a job of another collection waits in the lane of this one, and could begin."""
    waiting = reader.row(
        """
        SELECT other.id FROM job other
        WHERE other.status = 'queued' AND other.lane = %(lane)s AND other.due_at <= now()
          AND other.collection_id <> %(own)s
          AND NOT EXISTS (
              SELECT FROM job one
              WHERE one.collection_id = other.collection_id AND one.lane = other.lane AND one.status = 'running'
          )
        LIMIT 1
        """,
        {"lane": job.lane, "own": job.collection_id},
    )
    return waiting is not None


def keep(writer: Writer, job: Job, lease_seconds: float) -> bool | None:
    """Put off the end of the lease; whether the job is to be cancelled, or None if it is the claimant's no more."""
    row = writer.row(
        f"""
        UPDATE job SET due_at = now() + make_interval(secs => %(lease)s) WHERE {_CLAIMED}
        RETURNING cancel_requested_at IS NOT NULL AS cancelled
        """,
        _job_key(job) | {"lease": lease_seconds},
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
        _job_key(job) | {"created": created, "updated": updated, "unchanged": unchanged, "position": position},
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
    keep_result: bool = True,
) -> bool | None:
    """Say how many of so many are done with, in this stage; as ``keep``, whether to go on.

    Args:
        keep_result: the next try goes on from there, so that failed ones are counted anew.
    """
    row = writer.row(
        f"""
        UPDATE job SET received = %(received)s, updated = %(updated)s, unchanged = %(unchanged)s, stage = %(stage)s,
            attempts = CASE WHEN %(kept)s THEN 0 ELSE attempts END,
            error = CASE WHEN %(kept)s THEN NULL ELSE error END, updated_at = now()
        WHERE {_CLAIMED} RETURNING cancel_requested_at IS NOT NULL AS cancelled
        """,
        _job_key(job)
        | {"received": received, "updated": updated, "unchanged": unchanged, "stage": stage, "kept": keep_result},
    )
    return None if row is None else row.cancelled


def warn(writer: Writer, job: Job, kind: str, count: int, detail: str) -> bool | None:
    """Add to a count in the result's ``warnings``; as ``keep``, whether to go on."""
    row = writer.row(
        f"""
        UPDATE job SET result = coalesce(result, '{{}}') || jsonb_build_object(
            'warnings', coalesce(result -> 'warnings', '{{}}') || jsonb_build_object(
                %(kind)s::text, jsonb_build_object(
                    'count', coalesce((result -> 'warnings' -> %(kind)s::text ->> 'count')::bigint, 0) + %(count)s,
                    'detail', %(detail)s::text)))
        WHERE {_CLAIMED} RETURNING cancel_requested_at IS NOT NULL AS cancelled
        """,
        _job_key(job) | {"kind": kind, "count": count, "detail": detail},
    )
    return None if row is None else row.cancelled


def close(
    writer: Writer, job: Job, status: str, *, error: str | None = None, result: Mapping[str, Any] | None = None
) -> bool:
    """End the job; False, and nothing changes, if it is the claimant's no more.

    Args:
        result: replaces what the job's result says so far; None leaves it.
    """
    return (
        writer.execute(
            f"""
            UPDATE job SET status = %(status)s, error = %(error)s, result = coalesce(%(result)s, result),
                claimant = NULL, updated_at = now(), finished_at = now()
            WHERE {_CLAIMED}
            """,
            _job_key(job)
            | {"status": status, "error": error, "result": None if result is None else Jsonb(dict(result))},
        )
        > 0
    )


def attempts(reader: Reader, job: Job) -> int | None:
    """Failed tries since the job last came forward; None if it is the claimant's no more."""
    row = reader.row(f"SELECT attempts FROM job WHERE {_CLAIMED}", _job_key(job))
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
            _job_key(job) | {"tried": int(tried), "error": error, "seconds": after_seconds},
        )
        > 0
    )


def _job_key(job: Job) -> dict[str, object]:
    return {"collection": job.collection_id, "job": job.id, "claimant": job.claimant}
