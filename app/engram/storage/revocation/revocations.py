"""Selection of the verdicts that a revocation job takes back."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engram.storage.database import Reader, Writer


@dataclass(frozen=True, slots=True)
class VerdictFilter:
    """Filter of verdicts: by this judge, received from ``since`` on and before ``before``; None matches all."""

    judge: str | None = None
    since: datetime | None = None
    before: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the filter as a job stores it, without None."""
        document = {"judge": self.judge, "from": _time(self.since), "to": _time(self.before)}
        return {name: value for name, value in document.items() if value is not None}


_MATCHING = """
    collection_id = %(collection)s AND status <> 'revoked' AND id <= %(last)s
    AND (%(judge)s::text IS NULL OR judge = %(judge)s)
    AND (%(from)s::timestamptz IS NULL OR received_at >= %(from)s)
    AND (%(to)s::timestamptz IS NULL OR received_at < %(to)s)
"""


@dataclass(frozen=True, slots=True)
class StartedRevocation:
    """Events that a request revoked at once, and the last event ``last`` that its job covers."""

    last: int
    at_once: int
    remaining: int


def begin(writer: Writer, collection_id: int, criteria: VerdictFilter) -> StartedRevocation:
    """Revoke at once, of all verdicts accepted so far that match, those that wait."""
    last = writer.scalar(
        "SELECT coalesce(max(id), 0) FROM feedback_event WHERE collection_id = %(collection)s",
        {"collection": collection_id},
    )
    parameters = {"collection": collection_id, "last": last} | _as_parameters(criteria.as_json())
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
    remaining = writer.scalar(f"SELECT count(*) FROM feedback_event WHERE {_MATCHING}", parameters)
    return StartedRevocation(last, at_once, remaining)


def list_next(reader: Reader, collection_id: int, criteria: Mapping[str, Any], after: int, limit: int) -> list[int]:
    """The next verdicts after ``after`` that a job with this payload revokes, in order of acceptance."""
    rows = reader.rows(
        f"SELECT id FROM feedback_event WHERE {_MATCHING} AND id > %(after)s ORDER BY id LIMIT %(limit)s",
        {"collection": collection_id, "last": criteria["last"], "after": after, "limit": limit}
        | _as_parameters(criteria),
    )
    return [row.id for row in rows]


def _as_parameters(criteria: Mapping[str, Any]) -> dict[str, Any]:
    return {name: criteria.get(name) for name in ("judge", "from", "to")}


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat()
