"""What the planner knows of the tables, set to what it may have come to know."""

from typing import Any

import psycopg

KINDS = ("large", "small", "emptied", "none")
_OURS = "relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')"


def stop_autovacuum(connection: "psycopg.Connection[Any]") -> None:
    """Have the planner learn nothing more, however long a test takes."""
    tables = connection.execute(f"SELECT oid::regclass::text FROM pg_class WHERE {_OURS} AND relkind = 'r'")
    for (table,) in tables.fetchall():
        connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")


def misinform(connection: "psycopg.Connection[Any]", kind: str) -> None:
    """Have the planner know nothing of a collection that is yet to come; nobody corrects it.

    Args:
        kind: it knows what is there ("large"), or as many collections of a row or two ("small"), or tables as they
            were made ("emptied"), or nothing, as after a restore ("none").
    """
    stop_autovacuum(connection)
    if kind in ("large", "small"):
        connection.execute("ANALYZE")
    if kind == "small":
        # What ANALYZE would find, had each row a collection of its own: no value that comes often.
        connection.execute(
            """
            UPDATE pg_statistic SET stakind1 = 0, stanumbers1 = NULL, stavalues1 = NULL FROM pg_attribute a
            WHERE a.attrelid = starelid AND a.attnum = staattnum AND a.attname = 'collection_id'
            """
        )
    if kind == "none":
        connection.execute(
            """
            DELETE FROM pg_statistic USING pg_class t
            WHERE t.oid = starelid AND t.relnamespace = 'public'::regnamespace
            """
        )
    if kind in ("emptied", "none"):
        rows = 0 if kind == "emptied" else -1
        connection.execute(f"UPDATE pg_class SET reltuples = {rows}, relpages = 0 WHERE {_OURS}")
