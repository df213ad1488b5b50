"""Rows of the audit log, the record of administrative acts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from engram.storage.database import Reader, Writer


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One administrative act; ``status`` and ``ended_at`` are None until its outcome is known."""

    id: int
    begun_at: datetime
    ended_at: datetime | None
    principal: str
    tenant: str
    client: str | None
    request_id: str | None
    action: str
    target: str
    body: str | None
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
    """Insert an entry for an act that begins, and return its id."""
    entry: int = writer.scalar(
        """
        INSERT INTO audit_log (principal, tenant, client, request_id, action, target, body)
        VALUES (%(principal)s, %(tenant)s, %(client)s, %(request)s, %(action)s, %(target)s, %(body)s)
        RETURNING id
        """,
        {
            "principal": principal,
            "tenant": tenant,
            "client": client,
            "request": request_id,
            "action": action,
            "target": target,
            "body": body,
        },
    )
    return entry


def end(writer: Writer, entry: int, status: int) -> None:
    """Record the outcome of an act as an HTTP status."""
    writer.execute(
        "UPDATE audit_log SET status = %(status)s, ended_at = clock_timestamp() WHERE id = %(id)s",
        {"id": entry, "status": status},
    )


def strip(writer: Writer, moment: datetime, limit: int) -> int:
    """Erase bodies and addresses of at most ``limit`` entries from before a moment, and return how many."""
    return writer.execute(
        """
        UPDATE audit_log SET body = NULL, client = NULL WHERE id IN (
            SELECT id FROM audit_log WHERE begun_at < %(moment)s AND num_nonnulls(body, client) > 0 LIMIT %(limit)s
        )
        """,
        {"moment": moment, "limit": limit},
    )


def forget(writer: Writer, tenant: str) -> None:
    """Remove the entries of a tenant."""
    writer.execute("DELETE FROM audit_log WHERE tenant = %(tenant)s", {"tenant": tenant})


def page(reader: Reader, tenant: str, before: int | None, limit: int) -> Sequence[AuditEntry]:
    """Return entries of a tenant before the id ``before``, the latest first."""
    rows = reader.rows(
        """
        SELECT id, begun_at, ended_at, principal, tenant, client, request_id, action, target, body, status
        FROM audit_log WHERE tenant = %(tenant)s AND id < %(before)s ORDER BY id DESC LIMIT %(limit)s
        """,
        {"tenant": tenant, "before": 2**63 - 1 if before is None else before, "limit": limit},
    )
    return [AuditEntry(**row._asdict()) for row in rows]
