"""Sessions in a list."""

from uuid import UUID

from engram.storage.database import Reader
from engram.wings.sessions.core.session import SessionSummary


def page(
    reader: Reader,
    collection_id: int,
    *,
    status: str | None,
    principal: str | None,
    before: UUID | None,
    limit: int,
) -> list[SessionSummary]:
    """List a collection's sessions, the latest first. Ids of version 7 are in the order of their time.

    Args:
        status: only sessions with this status; None for all.
        principal: only sessions that this principal asked for; None for all.
        before: only sessions that began before the session with this id; None for all.
    """
    rows = reader.rows(
        """
        SELECT id, principal, question, planner, status, stop_reason, rounds, cost, sufficiency, covered,
               created_at, finished_at
        FROM session
        WHERE collection_id = %(collection)s AND (%(before)s::uuid IS NULL OR id < %(before)s)
          AND (%(status)s::text IS NULL OR status = %(status)s)
          AND (%(principal)s::text IS NULL OR principal = %(principal)s)
        ORDER BY id DESC LIMIT %(limit)s
        """,
        {"collection": collection_id, "before": before, "status": status, "principal": principal, "limit": limit},
    )
    return [SessionSummary(**row._asdict()) for row in rows]


def list_stopped(reader: Reader, collection_id: int, after: UUID | None, limit: int) -> list[UUID]:
    """Sessions that came to an end by themselves, by their ids, those after ``after``."""
    rows = reader.rows(
        """
        SELECT id FROM session
        WHERE collection_id = %(collection)s AND status = 'stopped' AND (%(after)s::uuid IS NULL OR id > %(after)s)
        ORDER BY id LIMIT %(limit)s
        """,
        {"collection": collection_id, "after": after, "limit": limit},
    )
    return [row.id for row in rows]
