"""Tenants: who owns collections and keys, and how much each may have of what."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import CLOCK, NOT_DELETED


@dataclass(frozen=True, slots=True)
class Quotas:
    """Limits of a tenant; None: as the settings say, or no limit.

    Attributes:
        passages: that it holds.
        queries, verdicts: of a day (UTC).
        llm_tokens: that a language model reads and writes for it on a day.
        jobs: that are open at a time.
        judges: names that give verdicts on its collections' answers, or that something is set for.
        collections: that it has.
        keys: access keys that count.
        sessions, facts: that it starts or states by itself on a day (UTC).
    """

    passages: int | None = None
    queries: int | None = None
    verdicts: int | None = None
    llm_tokens: int | None = None
    jobs: int | None = None
    judges: int | None = None
    collections: int | None = None
    keys: int | None = None
    sessions: int | None = None
    facts: int | None = None

    def fill_missing(self, defaults: "Quotas") -> "Quotas":
        """Replace missing quotas by those of ``defaults``."""
        own, others = self.as_row(), defaults.as_row()
        return Quotas(**{name: others[name] if value is None else value for name, value in own.items()})

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


_COLUMNS = (
    "tenant.name, tenant.passages, tenant.queries, tenant.verdicts, tenant.llm_tokens, tenant.jobs, tenant.judges, "
    "tenant.collections, tenant.keys, tenant.sessions, tenant.facts"
)
_COUNTS = f"""
    (SELECT count(*) FROM collection WHERE collection.tenant = tenant.name AND {NOT_DELETED}) AS collection_count,
    (SELECT count(*) FROM access_key WHERE access_key.tenant = tenant.name AND revoked_at IS NULL
     AND (expires_at IS NULL OR expires_at > now())) AS key_count,
    (SELECT coalesce(sum(passage_count), 0)::bigint FROM collection
     WHERE collection.tenant = tenant.name AND {NOT_DELETED}) AS held
"""


def put(writer: Writer, name: str, quotas: Quotas) -> None:
    """Make the tenant, or set its quotas anew."""
    writer.execute(
        """
        INSERT INTO tenant (name, passages, queries, verdicts, llm_tokens, jobs, judges,
            collections, keys, sessions, facts)
        VALUES (%(name)s, %(passages)s, %(queries)s, %(verdicts)s, %(llm_tokens)s, %(jobs)s, %(judges)s,
            %(collections)s, %(keys)s, %(sessions)s, %(facts)s)
        ON CONFLICT (name) DO UPDATE SET passages = excluded.passages, queries = excluded.queries,
            verdicts = excluded.verdicts, llm_tokens = excluded.llm_tokens, jobs = excluded.jobs,
            judges = excluded.judges, collections = excluded.collections, keys = excluded.keys,
            sessions = excluded.sessions, facts = excluded.facts
        """,
        {"name": name, **quotas.as_row()},
    )


def make(writer: Writer, name: str) -> None:
    """Make the tenant, without quotas, if it is not there."""
    writer.execute("INSERT INTO tenant (name) VALUES (%(name)s) ON CONFLICT DO NOTHING", {"name": name})


def exists(reader: Reader, name: str) -> bool:
    """Whether there is such a tenant, and it is not being removed."""
    statement = "SELECT EXISTS (SELECT FROM tenant WHERE name = %(name)s AND closed_at IS NULL)"
    return bool(reader.scalar(statement, {"name": name}))


def close(writer: Writer, name: str) -> bool:
    """Have nobody be of the tenant any more, who needs a key or a token for that; whether it is there."""
    closed = writer.execute(
        f"UPDATE tenant SET closed_at = coalesce(closed_at, clock.moment) FROM {CLOCK} WHERE name = %(name)s",
        {"name": name},
    )
    writer.execute(
        "UPDATE access_key SET revoked_at = now() WHERE tenant = %(name)s AND revoked_at IS NULL", {"name": name}
    )
    return closed > 0


def list_closed(reader: Reader) -> list[str]:
    """Tenants that are being removed, by name."""
    rows = reader.rows("SELECT name FROM tenant WHERE closed_at IS NOT NULL ORDER BY name")
    return [row.name for row in rows]


def remove(writer: Writer, name: str) -> bool:
    """Remove a closed tenant with its keys and what it spent; False: it has collections left, or is not closed."""
    # Whoever makes a collection at this moment has it made before, or is told that there is no tenant.
    writer.row("SELECT name FROM tenant WHERE name = %(name)s FOR UPDATE", {"name": name})
    return (
        writer.execute(
            """
            DELETE FROM tenant WHERE name = %(name)s AND closed_at IS NOT NULL
              AND NOT EXISTS (SELECT FROM collection WHERE tenant = %(name)s)
            """,
            {"name": name},
        )
        > 0
    )


def judges(reader: Reader, name: str) -> set[str]:
    """Return the judges whose verdicts or settings the tenant's collections hold."""
    if reader.distributed:  # where nothing goes from name to name over all nodes
        ids = reader.rows(f"SELECT id FROM collection WHERE tenant = %(name)s AND {NOT_DELETED}", {"name": name})
        own = {"own": [row.id for row in ids]}
        judge_rows = reader.rows(
            "SELECT DISTINCT judge FROM feedback_event WHERE collection_id = ANY(%(own)s)", own
        )
        named = reader.rows("SELECT DISTINCT name FROM judge WHERE collection_id = ANY(%(own)s)", own)
        return {row.judge for row in judge_rows} | {row.name for row in named}
    rows = reader.rows(
        f"""
        WITH RECURSIVE own AS MATERIALIZED (SELECT id FROM collection WHERE tenant = %(name)s AND {NOT_DELETED}),
        said(collection_id, judge) AS ( -- from name to name by the index, not from verdict to verdict
            SELECT own.id, (SELECT min(e.judge) FROM feedback_event e WHERE e.collection_id = own.id) FROM own
            UNION ALL
            SELECT said.collection_id, (
                SELECT min(e.judge) FROM feedback_event e
                WHERE e.collection_id = said.collection_id AND e.judge > said.judge
            ) FROM said WHERE said.judge IS NOT NULL
        )
        SELECT judge FROM said WHERE judge IS NOT NULL
        UNION SELECT judge.name FROM own JOIN judge ON judge.collection_id = own.id
        """,
        {"name": name},
    )
    return {row.judge for row in rows}


def list_all(reader: Reader) -> list[Tenant]:
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
    if quota is not None and amount > quota:
        return None
    spent: int | None = writer.scalar(
        """
        INSERT INTO quota_usage (tenant, principal, day, kind, amount)
        VALUES (%(tenant)s, %(principal)s, (now() AT TIME ZONE 'UTC')::date, %(kind)s, %(amount)s)
        ON CONFLICT (tenant, principal, day, kind) DO UPDATE SET amount = quota_usage.amount + excluded.amount
            WHERE %(quota)s::bigint IS NULL OR quota_usage.amount + excluded.amount <= %(quota)s
        RETURNING amount
        """,
        {"tenant": tenant, "principal": principal, "kind": kind, "amount": amount, "quota": quota},
    )
    return spent


def get_spent(reader: Reader, tenant: str, principal: str, kind: str) -> int:
    """Return today's use of a quota."""
    total = reader.scalar(
        """
        SELECT amount FROM quota_usage WHERE tenant = %(tenant)s AND principal = %(principal)s AND kind = %(kind)s
          AND day = (now() AT TIME ZONE 'UTC')::date
        """,
        {"tenant": tenant, "principal": principal, "kind": kind},
    )
    return int(total or 0)


def list_spent_today(reader: Reader, tenant: str, principal: str) -> dict[str, int]:
    """Return today's use of each quota, by its kind."""
    rows = reader.rows(
        """
        SELECT kind, amount FROM quota_usage WHERE tenant = %(tenant)s AND principal = %(principal)s
          AND day = (now() AT TIME ZONE 'UTC')::date
        """,
        {"tenant": tenant, "principal": principal},
    )
    return {row.kind: int(row.amount) for row in rows}


def count_held(reader: Reader, tenant: str) -> tuple[int, int]:
    """Passages of all its collections, and jobs that are open there."""
    if reader.distributed:
        own = reader.rows(
            f"SELECT id, passage_count FROM collection WHERE tenant = %(tenant)s AND {NOT_DELETED}",
            {"tenant": tenant},
        )
        jobs = reader.scalar(
            """
            SELECT count(*) FROM job
            WHERE collection_id = ANY(%(own)s) AND status IN ('receiving', 'queued', 'running')
            """,
            {"own": [row.id for row in own]},
        )
        return sum(row.passage_count for row in own), int(jobs)
    row = reader.row(
        f"""
        SELECT coalesce(sum(passage_count), 0)::bigint AS passages,
               coalesce(sum((SELECT count(*) FROM job WHERE job.collection_id = collection.id
                             AND job.status IN ('receiving', 'queued', 'running'))), 0)::bigint AS jobs
        FROM collection WHERE tenant = %(tenant)s AND {NOT_DELETED}
        """,
        {"tenant": tenant},
    )
    return int(row.passages), int(row.jobs)


def collection_count(reader: Reader, tenant: str) -> int:
    """Collections that the tenant has."""
    statement = f"SELECT count(*) FROM collection WHERE tenant = %(tenant)s AND {NOT_DELETED}"
    return int(reader.scalar(statement, {"tenant": tenant}))


def key_count(reader: Reader, tenant: str) -> int:
    """Access keys of the tenant that count."""
    statement = """
        SELECT count(*) FROM access_key
        WHERE tenant = %(tenant)s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())
    """
    return int(reader.scalar(statement, {"tenant": tenant}))


def forget_spent(writer: Writer, days: int) -> int:
    """Remove what was spent more than so many days ago."""
    return writer.execute(
        "DELETE FROM quota_usage WHERE day < (now() AT TIME ZONE 'UTC')::date - %(days)s::integer", {"days": days}
    )


def _tenant(row: Any) -> Tenant:
    return Tenant(row.name, _quotas(row), row.collection_count, row.key_count, row.held)


def _quotas(row: Any) -> Quotas:
    values: Mapping[str, Any] = row._asdict()
    return Quotas(**{field.name: values[field.name] for field in fields(Quotas)})
