"""All rows that name a person, with the rows that belong to them, of every table there is."""

from collections.abc import Iterator, Sequence
from typing import Any

from engram.storage.database import Reader

NAMES = ("principal", "judge")
"""Columns that name a person, in tables of the core and of wings."""
LEFT_OUT_TYPES = ("vector", "halfvec", "bytea", "_float8", "_float4")


def list_tables(reader: Reader, columns: Sequence[str]) -> dict[str, list[str]]:
    """Table -> those of the columns that it has, of all tables but partitions."""
    rows = reader.rows(
        """
        SELECT t.relname AS name, array_agg(a.attname::text ORDER BY a.attname) AS columns
        FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid AND NOT a.attisdropped AND a.attnum > 0
        WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind IN ('r', 'p') AND NOT t.relispartition
          AND a.attname = ANY(%(columns)s::text[])
        GROUP BY t.relname ORDER BY t.relname
        """,
        {"columns": list(columns)},
    )
    return {row.name: row.columns for row in rows}


def list_children(reader: Reader, table: str) -> list[tuple[str, str]]:
    """Tables whose rows belong to those of a table, each with the column that refers to its ``id``."""
    rows = reader.rows(
        """
        SELECT child.relname AS name, a.attname::text AS referring FROM pg_constraint held
        JOIN pg_class child ON child.oid = held.conrelid
        JOIN pg_attribute a ON a.attrelid = held.conrelid AND a.attnum = held.conkey[2]
        WHERE held.contype = 'f' AND held.confrelid = %(table)s::regclass AND cardinality(held.conkey) = 2
          AND held.confdeltype = 'c' AND child.relname NOT LIKE '%%_audit'
        ORDER BY child.relname
        """,
        {"table": table},
    )
    return [(row.name, row.referring) for row in rows]


def iterate_rows(reader: Reader, table: str, condition: str, values: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of a table that meet a condition in SQL, without vectors and features."""
    dropped = reader.rows(
        """
        SELECT attname::text AS name FROM pg_attribute
        WHERE attrelid = %(table)s::regclass AND attnum > 0 AND NOT attisdropped
          AND atttypid IN (SELECT oid FROM pg_type WHERE typname = ANY(%(types)s::text[]))
        """,
        {"table": table, "types": list(LEFT_OUT_TYPES)},
    )
    rows = reader.rows(
        f'SELECT to_jsonb(held) - %(dropped)s::text[] AS document FROM "{table}" AS held WHERE {condition}',
        values | {"dropped": [row.name for row in dropped]},
    )
    for row in rows:
        yield {"table": table} | row.document


def list_person_rows(reader: Reader, tenant: str, name: str) -> Iterator[dict[str, Any]]:
    """All rows of a tenant that name a person as principal or judge, with the rows that belong to them."""
    values = {"tenant": tenant, "name": name}
    own = "held.collection_id IN (SELECT id FROM collection WHERE tenant = %(tenant)s)"
    with_collection, naming = list_tables(reader, ["collection_id"]), list_tables(reader, NAMES)
    for table, columns in naming.items():
        named = " OR ".join(f"held.{column} = %(name)s" for column in columns)
        where = f"{own if table in with_collection else 'held.tenant = %(tenant)s'} AND ({named})"
        yield from iterate_rows(reader, table, where, values)
        for child, referring in list_children(reader, table):
            if child in naming:  # its rows name persons themselves, of whom they are then
                continue
            of_parent = f"""
                {own} AND (held.collection_id, held.{referring}) IN (
                    SELECT collection_id, id FROM "{table}" AS held WHERE {where}
                )
            """
            yield from iterate_rows(reader, child, of_parent, values)
    yield from iterate_rows(reader, "judge", f"{own} AND held.name = %(name)s", values)
    yield from iterate_rows(reader, "access_key", "held.tenant = %(tenant)s AND held.name = %(name)s", values)
