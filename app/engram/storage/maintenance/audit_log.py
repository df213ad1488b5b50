"""The record of administrative acts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from engram.storage.database import Reader, Writer


@dataclass(frozen=True, slots=True)
class Act:
    """An act as it is recorded; ``status`` and ``ended_at`` are None while nobody knows what came of it."""

    id: int
    begun_at: datetime
    ended_at: datetime | None
    principal: str
    tenant: str
    client: str | None
    request_id: str | None
    action: str
    target: str
    said: str | None
    status: int | None


def begin(
    writer: Writer,
    *,
    principal: str,
    tenant: str,
    client: str | None,
    request_id: str | None,
    action: str,
    target: str,
    body: str | None,
) -> int:
    """Record that an act begins; its id."""
    act: int = writer.scalar(
        """
        INSERT INTO act (principal, tenant, client, request_id, action, target, said)
        VALUES (%(principal)s, %(tenant)s, %(client)s, %(request)s, %(action)s, %(target)s, %(said)s)
        RETURNING id
        """,
        {
            "principal": principal,
            "tenant": tenant,
            "client": client,
            "request": request_id,
            "action": action,
            "target": target,
            "said": body,
        },
    )
    return act


def end(writer: Writer, act: int, status: int) -> None:
    """Record what came of it."""
    writer.execute(
        "UPDATE act SET status = %(status)s, ended_at = clock_timestamp() WHERE id = %(id)s",
        {"id": act, "status": status},
    )


def strip(writer: Writer, moment: datetime, limit: int) -> int:
    """Forget what was sent, and from where, in acts of before the moment, at most ``limit``; of how many."""
    return writer.execute(
        """
        UPDATE act SET said = NULL, client = NULL WHERE id IN (
            SELECT id FROM act WHERE begun_at < %(moment)s AND num_nonnulls(said, client) > 0 LIMIT %(limit)s
        )
        """,
        {"moment": moment, "limit": limit},
    )


def forget(writer: Writer, tenant: str) -> None:
    """Remove the tenant's acts."""
    writer.execute("DELETE FROM act WHERE tenant = %(tenant)s", {"tenant": tenant})


def page(reader: Reader, tenant: str, before: int | None, limit: int) -> Sequence[Act]:
    """The tenant's acts, the latest first, those before the id ``before``."""
    rows = reader.rows(
        """
        SELECT id, begun_at, ended_at, principal, tenant, client, request_id, action, target, said, status
        FROM act WHERE tenant = %(tenant)s AND id < %(before)s ORDER BY id DESC LIMIT %(limit)s
        """,
        {"tenant": tenant, "before": 2**63 - 1 if before is None else before, "limit": limit},
    )
    return [Act(**row._asdict()) for row in rows]
