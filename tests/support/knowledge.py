"""What the planner knows of the tables, set to what it may have come to know."""

from typing import Any

import psycopg

KINDS = ("large", "none", "empty", "small")
_OURS = "relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')"


def misinform(connection: "psycopg.Connection[Any]", kind: str) -> None:
    """Have the planner know nothing of a collection that is yet to come; nobody corrects it.

    Args:
        kind: it knows a large collection ("large"), nothing ("none"), tables as they were when they were empty
            ("empty"), or many collections of a row or two ("small").
    """
    for (table,) in connection.execute(f"SELECT oid::regclass::text FROM pg_class WHERE {_OURS} AND relkind = 'r'"):
        connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    if kind in ("large", "small"):
        connection.execute("ANALYZE")
    else:
        if kind == "none":
            connection.execute(
                f"DELETE FROM pg_statistic USING pg_class t WHERE t.oid = starelid AND {_OURS.replace('rel', 't.rel')}"
            )
        rows = {"none": -1, "empty": 0}[kind]
        connection.execute(f"UPDATE pg_class SET reltuples = {rows}, relpages = 0 WHERE {_OURS}")
    if kind == "small":
        connection.execute(
            """
            UPDATE pg_statistic SET stadistinct = coalesce(
                (SELECT option_value::float4 FROM pg_options_to_table(a.attoptions) WHERE option_name = 'n_distinct'), -1
            ), stakind1 = 0, stakind2 = 0, stanumbers1 = NULL, stanumbers2 = NULL, stavalues1 = NULL, stavalues2 = NULL
            FROM pg_attribute a
            WHERE a.attrelid = starelid AND a.attnum = staattnum AND a.attname = 'collection_id'
            """
        )
