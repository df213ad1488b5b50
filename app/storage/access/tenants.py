"""Tenants: who owns collections and keys, and how much each may have of what."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from app.storage.database import Reader, Writer


@dataclass(frozen=True, slots=True)
class Quotas:
    """How much a tenant may have; None: as much as it likes.

    Attributes:
        passages: that it holds.
        queries, verdicts: of a day (UTC).
        llm_tokens: that a language model reads and writes for it on a day.
        jobs: that are open at a time.
    """

    passages: int | None = None
    queries: int | None = None
    verdicts: int | None = None
    llm_tokens: int | None = None
    jobs: int | None = None

    def as_row(self) -> dict[str, int | None]:
        """By name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class Tenant:
    """A tenant as it stands."""

    name: str
    quotas: Quotas
    collections: int
    keys: int
    passages: int


_COLUMNS = "tenant.name, tenant.passages, tenant.queries, tenant.verdicts, tenant.llm_tokens, tenant.jobs"
_COUNTS = """
    (SELECT count(*) FROM collection WHERE collection.tenant = tenant.name) AS collections,
    (SELECT count(*) FROM access_key WHERE access_key.tenant = tenant.name AND revoked_at IS NULL
     AND (expires_at IS NULL OR expires_at > now())) AS keys,
    (SELECT coalesce(sum(passage_count), 0)::bigint FROM collection WHERE collection.tenant = tenant.name) AS held
"""


def put(writer: Writer, name: str, quotas: Quotas) -> None:
    """Make the tenant, or set its quotas anew."""
    writer.execute(
        """
        INSERT INTO tenant (name, passages, queries, verdicts, llm_tokens, jobs)
        VALUES (%(name)s, %(passages)s, %(queries)s, %(verdicts)s, %(llm_tokens)s, %(jobs)s)
        ON CONFLICT (name) DO UPDATE SET passages = excluded.passages, queries = excluded.queries,
            verdicts = excluded.verdicts, llm_tokens = excluded.llm_tokens, jobs = excluded.jobs
        """,
        {"name": name, **quotas.as_row()},
    )


def make(writer: Writer, name: str) -> None:
    """Make the tenant, without quotas, if it is not there."""
    writer.execute("INSERT INTO tenant (name) VALUES (%(name)s) ON CONFLICT DO NOTHING", {"name": name})


def exists(reader: Reader, name: str) -> bool:
    """Whether there is such a tenant."""
    return bool(reader.scalar("SELECT EXISTS (SELECT FROM tenant WHERE name = %(name)s)", {"name": name}))


def every(reader: Reader) -> list[Tenant]:
    """All tenants by name."""
    return [_tenant(row) for row in reader.rows(f"SELECT {_COLUMNS}, {_COUNTS} FROM tenant ORDER BY name")]


def quotas(reader: Reader, name: str) -> Quotas:
    """The tenant's; none of a tenant that is not there."""
    row = reader.row(f"SELECT {_COLUMNS} FROM tenant WHERE name = %(name)s", {"name": name})
    return Quotas() if row is None else _quotas(row)


def spend(writer: Writer, tenant: str, principal: str, kind: str, amount: int, quota: int | None) -> int | None:
    """Spend some of today's quota; what is spent of it then, or None where it does not suffice.

    ``principal`` is empty for what the whole tenant spends; ``quota`` None counts without a bound.
    """
    spent: int | None = writer.scalar(
        """
        INSERT INTO spent (tenant, principal, day, kind, amount)
        SELECT %(tenant)s, %(principal)s, (now() AT TIME ZONE 'UTC')::date, %(kind)s, %(amount)s
        WHERE %(quota)s::bigint IS NULL OR %(amount)s <= %(quota)s
        ON CONFLICT (tenant, principal, day, kind) DO UPDATE SET amount = spent.amount + excluded.amount
            WHERE %(quota)s::bigint IS NULL OR spent.amount + excluded.amount <= %(quota)s
        RETURNING amount
        """,
        {"tenant": tenant, "principal": principal, "kind": kind, "amount": amount, "quota": quota},
    )
    return spent


def spent(reader: Reader, tenant: str, principal: str, kind: str) -> int:
    """What was spent today."""
    found = reader.scalar(
        """
        SELECT amount FROM spent WHERE tenant = %(tenant)s AND principal = %(principal)s AND kind = %(kind)s
          AND day = (now() AT TIME ZONE 'UTC')::date
        """,
        {"tenant": tenant, "principal": principal, "kind": kind},
    )
    return int(found or 0)


def spent_today(reader: Reader, tenant: str, principal: str) -> dict[str, int]:
    """Kind -> what was spent of it today."""
    rows = reader.rows(
        """
        SELECT kind, amount FROM spent WHERE tenant = %(tenant)s AND principal = %(principal)s
          AND day = (now() AT TIME ZONE 'UTC')::date
        """,
        {"tenant": tenant, "principal": principal},
    )
    return {row.kind: int(row.amount) for row in rows}


def held(reader: Reader, tenant: str) -> tuple[int, int]:
    """Passages of all its collections, and jobs that are open there."""
    row = reader.row(
        """
        SELECT coalesce(sum(passage_count), 0)::bigint AS passages,
               coalesce(sum((SELECT count(*) FROM job WHERE job.collection_id = collection.id
                             AND job.status IN ('receiving', 'queued', 'running'))), 0)::bigint AS jobs
        FROM collection WHERE tenant = %(tenant)s
        """,
        {"tenant": tenant},
    )
    return int(row.passages), int(row.jobs)


def forget_spent(writer: Writer, days: int) -> int:
    """Remove what was spent more than so many days ago."""
    return writer.execute(
        "DELETE FROM spent WHERE day < (now() AT TIME ZONE 'UTC')::date - %(days)s::integer", {"days": days}
    )


def _tenant(row: Any) -> Tenant:
    return Tenant(row.name, _quotas(row), row.collections, row.keys, row.held)


def _quotas(row: Any) -> Quotas:
    values: Mapping[str, Any] = row._mapping
    return Quotas(**{field.name: values[field.name] for field in fields(Quotas)})
