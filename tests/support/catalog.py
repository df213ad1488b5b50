"""Contents of a database's catalog, without the order of columns: two databases of one schema have the same."""

import psycopg
from sqlalchemy.engine import make_url

from engram.migrations import rules
from tests.support import defined_schema
from tests.support.databases import new_database

_OURS = "t.relnamespace = 'public'::regnamespace AND t.relname <> 'alembic_version' AND NOT t.relispartition"
_STATEMENTS = {
    "table": f"""
        SELECT t.relname, t.relkind, t.relpersistence, t.reloptions, t.relrowsecurity, t.relforcerowsecurity,
               t.relacl::text[], pg_get_partkeydef(t.oid), obj_description(t.oid, 'pg_class')
        FROM pg_class t WHERE {_OURS} AND t.relkind IN ('r', 'p', 'v', 'm')
    """,
    "column": f"""
        SELECT t.relname, attname, format_type(atttypid, atttypmod), attnotnull, pg_get_expr(adbin, adrelid),
               attidentity, attgenerated, attstorage, attcompression, attoptions, attcollation::regcollation,
               attacl::text[], attstattarget, col_description(attrelid, attnum)
        FROM pg_class t JOIN pg_attribute ON attrelid = t.oid
        LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
        WHERE {_OURS} AND t.relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped
    """,
    # Postgres 18 and later name a constraint for each NOT NULL; the names depend on the order of tables.
    "constraint": f"""
        SELECT t.relname, conname, convalidated, pg_get_constraintdef(c.oid)
        FROM pg_constraint c JOIN pg_class t ON t.oid = conrelid WHERE {_OURS} AND contype <> 'n'
    """,
    "index": f"""
        SELECT t.relname, pg_get_indexdef(indexrelid), indisvalid, i.reloptions
        FROM pg_index JOIN pg_class t ON t.oid = indrelid JOIN pg_class i ON i.oid = indexrelid WHERE {_OURS}
    """,
    "sequence": f"""
        SELECT t.relname, format_type(seqtypid, NULL), seqstart, seqincrement, seqmin, seqmax, seqcache, seqcycle,
               t.relacl::text[]
        FROM pg_sequence JOIN pg_class t ON t.oid = seqrelid WHERE {_OURS}
    """,
    "policy": "SELECT tablename, policyname, permissive, roles::text[], cmd, qual, with_check FROM pg_policies",
    "trigger": f"""
        SELECT t.relname, tgname, tgenabled, pg_get_triggerdef(g.oid)
        FROM pg_trigger g JOIN pg_class t ON t.oid = tgrelid WHERE {_OURS} AND NOT tgisinternal
    """,
    "function": """
        SELECT proname, pg_get_function_identity_arguments(p.oid), prosrc, proacl::text[]
        FROM pg_proc p WHERE pronamespace = 'public'::regnamespace AND NOT EXISTS (
            SELECT FROM pg_depend WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e'
        )
    """,
    "statistics": "SELECT stxname, pg_get_statisticsobjdef(oid) FROM pg_statistic_ext",
    "extension": "SELECT extname, extversion FROM pg_extension",
}


def describe_database(url: str) -> list[str]:
    """Describe each object of a kind in ``_STATEMENTS`` in a line."""
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain) as connection:
        return sorted(
            f"{kind} {row[0]}: {row[1:]}"
            for kind, statement in _STATEMENTS.items()
            for row in connection.execute(statement).fetchall()
        )


def describe_tables(url: str) -> list[str]:
    """Describe a new database on the server of ``url``, made from the tables in Python alone."""
    with new_database(url) as empty:
        plain = make_url(empty).set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(plain) as connection:
            connection.execute("CREATE EXTENSION vector")
            connection.execute(defined_schema.render().encode())
            for rule in rules.EVERY_TABLE:
                connection.execute(rule.encode())
        return describe_database(empty)
