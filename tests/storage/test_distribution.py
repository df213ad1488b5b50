"""The schema can be distributed by collection: what Citus demands of one, of the catalogue.

A table is distributed by a column that stands in its primary key and in every unique one; its foreign keys carry
that column on both sides, or lead to a table that is on all nodes; the column never changes; and what numbers rows
is bigint, the only kind of identity that nodes can give without asking each other.
"""

import re
from pathlib import Path

import pytest

import app
from app.composition import Application

REFERENCE = {"tenant", "collection"}
"""On all nodes: small, written seldom, and referred to by every row."""
LOCAL = {"access_key", "spent", "act"}
"""On the coordinator: of tenants, not of collections."""
TABLES = "relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace AND NOT relispartition"


@pytest.fixture(scope="module")
def tables(application: Application) -> set[str]:
    with application.database.read() as reader:
        rows = reader.rows(f"SELECT relname FROM pg_class WHERE {TABLES} AND relname <> 'alembic_version'")
    return {row.relname for row in rows}


def test_every_table_is_of_collections_or_a_named_exception(application: Application, tables: set[str]) -> None:
    with application.database.read() as reader:
        rows = reader.rows(
            f"""
            SELECT relname FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
            WHERE {TABLES} AND attname = 'collection_id' AND attnotnull
            """
        )
    assert {row.relname for row in rows} == tables - REFERENCE - LOCAL


def test_every_key_has_the_collection(application: Application) -> None:
    with application.database.read() as reader:
        rows = reader.rows(
            f"""
            SELECT DISTINCT relname FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
            WHERE {TABLES} AND indisunique AND NOT EXISTS (
                SELECT FROM pg_attribute
                WHERE attrelid = indrelid AND attname = 'collection_id' AND attnum = ANY(indkey[:indnkeyatts - 1])
            )
            """
        )
    assert {row.relname for row in rows} == REFERENCE | LOCAL | {"alembic_version"}


def test_every_foreign_key_stays_within_the_collection_or_leads_to_what_is_everywhere(
    application: Application,
) -> None:
    with application.database.read() as reader:
        rows = reader.rows(
            """
            SELECT conname, conrelid::regclass::text AS of, confrelid::regclass::text AS onto,
                (SELECT array_agg(a.attname || '>' || b.attname)
                 FROM unnest(conkey, confkey) AS k (x, y)
                 JOIN pg_attribute a ON a.attrelid = conrelid AND a.attnum = k.x
                 JOIN pg_attribute b ON b.attrelid = confrelid AND b.attnum = k.y) AS pairs
            FROM pg_constraint WHERE contype = 'f' AND conparentid = 0 AND connamespace = 'public'::regnamespace
            """
        )
    assert len(rows) > 50
    for row in rows:
        if row.onto not in REFERENCE:
            assert "collection_id>collection_id" in row.pairs, row.conname
        assert row.of not in REFERENCE or row.onto in REFERENCE, row.conname


def test_what_numbers_rows_is_a_bigint(application: Application) -> None:
    with application.database.read() as reader:
        rows = reader.rows(
            f"""
            SELECT relname, attname, atttypid::regtype::text AS type
            FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
            WHERE {TABLES} AND (attidentity <> '' OR pg_get_serial_sequence(relname, attname) IS NOT NULL)
            """
        )
    assert rows
    assert {row.type for row in rows} == {"bigint"}


def test_no_table_has_a_trigger_of_its_own(application: Application) -> None:
    with application.database.read() as reader:
        rows = reader.rows("SELECT tgname FROM pg_trigger WHERE NOT tgisinternal")
    assert [row.tgname for row in rows] == []


def test_no_statement_moves_a_row_to_another_collection() -> None:
    moved = re.compile(r"\bSET\b(?:(?!\bWHERE\b|\bFROM\b|\bRETURNING\b)[^;])*?\bcollection_id\s*=", re.IGNORECASE)
    for file in sorted((Path(app.__file__).parent / "storage").rglob("*.py")):
        for statement in re.findall(r'"""(.*?)"""', file.read_text(encoding="utf-8"), re.DOTALL):
            if re.search(r"\bUPDATE\b", statement):
                assert not moved.search(statement), (file.name, statement)
    assert moved.search("UPDATE passage SET text = 'x', collection_id = 3 WHERE id = 1")
