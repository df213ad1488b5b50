"""Row security: whether Postgres itself keeps tenants apart."""

from engram.context import tenancy
from engram.context.errors import ConfigurationError
from engram.storage.database import TENANT_ROLE, Database, Reader

POLICY = "tenant"
"""The policy of each table with rows of collections (``engram.migrations.rules``)."""

READERS_POLICY = "readers"
"""The policy of each table with rows of passages."""


def check(database: Database) -> None:
    """See that connections can serve single tenants, and then see no rows of others.

    Raises:
        ConfigurationError: the role for that is not there, is not this one's to take or is not bound by policies,
            or a table shows it rows of every tenant.
    """
    with tenancy.allow_all_tenants(), database.read() as reader:
        role = reader.row(
            "SELECT rolsuper OR rolbypassrls AS is_unbound FROM pg_roles WHERE rolname = %(role)s",
            {"role": TENANT_ROLE},
        )
        if role is None or not reader.scalar("SELECT pg_has_role(%(role)s, 'MEMBER')", {"role": TENANT_ROLE}):
            raise ConfigurationError(
                f"ENGRAM_ROW_SECURITY needs the role {TENANT_ROLE}, and that it is granted to this one."
            )
        if role.is_unbound:
            raise ConfigurationError(f"ENGRAM_ROW_SECURITY needs a role {TENANT_ROLE} that is bound by policies.")
        if tables := list_unprotected(reader):
            raise ConfigurationError(
                f"ENGRAM_ROW_SECURITY needs row security with the policy {POLICY} alone on: {', '.join(tables)}."
            )


def list_unprotected(reader: Reader) -> list[str]:
    """Tables with rows of collections that lack row security or its policy, or have another permissive one."""
    rows = reader.rows(
        """
        SELECT t.relname AS name FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid AND NOT a.attisdropped
        WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind IN ('r', 'p') AND NOT t.relispartition
          AND (a.attname = 'collection_id' OR t.relname = 'collection' AND a.attname = 'tenant')
          AND (NOT t.relrowsecurity OR ARRAY[%(policy)s::text] IS DISTINCT FROM (
            SELECT array_agg(polname::text) FROM pg_policy WHERE polrelid = t.oid AND polpermissive
        ))
        ORDER BY t.relname
        """,
        {"policy": POLICY},
    )
    return [row.name for row in rows]


def list_unbound(reader: Reader) -> list[str]:
    """Tables with rows of passages that show a caller all of them: they lack the policy of readers."""
    rows = reader.rows(
        """
        SELECT DISTINCT t.relname AS name FROM pg_class t
        JOIN pg_attribute a ON a.attrelid = t.oid AND NOT a.attisdropped
        WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind IN ('r', 'p') AND NOT t.relispartition
          AND (a.attname IN ('reader_set_id', 'passage_id', 'sentence_id') OR t.relname IN ('entity', 'question')
               OR t.relname LIKE 'fact%%' AND a.attname = 'collection_id')
          AND NOT EXISTS (
            SELECT FROM pg_policy WHERE polrelid = t.oid AND polname = %(policy)s AND NOT polpermissive
          )
        ORDER BY 1
        """,
        {"policy": READERS_POLICY},
    )
    return [row.name for row in rows]
