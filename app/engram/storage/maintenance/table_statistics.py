"""The planner's statistics of tables that grow fast.

A session keeps the plans it once made, those of foreign-key checks among them, until the table's statistics change.
One made while a table was nearly empty reads it from end to end, for each row that refers to it: fifty times slower
after some thousand rows. Autovacuum looks once a minute, which for a collection that is being filled is long.
"""

from engram.storage.database import Administrator, Reader

GROWTH = 4
LEAST_PAGES = 8
LEAST_ROWS = 100


def list_outgrown(reader: Reader) -> list[str]:
    """This role's tables that have grown since they were last analysed: what is known of them misleads.

    They have ``GROWTH`` times as many pages as then, at least ``LEAST_PAGES``; or were empty, as a table is whose
    collections were removed, and have ``LEAST_ROWS`` rows now, in pages that they had before.
    """
    rows = reader.rows(
        """
        SELECT t.oid::regclass::text AS name FROM pg_class t JOIN pg_namespace n ON n.oid = t.relnamespace
        WHERE n.nspname = current_schema() AND t.relkind = 'r' AND pg_has_role(t.relowner, 'USAGE')
          AND (pg_relation_size(t.oid) / current_setting('block_size')::bigint
                   >= greatest(%(growth)s * t.relpages, %(least)s)
               OR t.reltuples = 0 AND pg_stat_get_live_tuples(t.oid) >= %(rows)s)
        ORDER BY t.relname
        """,
        {"growth": GROWTH, "least": LEAST_PAGES, "rows": LEAST_ROWS},
    )
    return [row.name for row in rows]


def analyse(administrator: Administrator, table: str) -> None:
    """Look at a table anew, unless someone is at it; nobody is held up."""
    administrator.execute(f"ANALYZE (SKIP_LOCKED) {table}")
