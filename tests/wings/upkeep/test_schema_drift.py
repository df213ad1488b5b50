"""What a database lacks of its schema, in words."""

from collections.abc import Iterator

import pytest

from engram.storage.database import Database
from engram.storage.schema_revision import migrate
from engram.wings.upkeep.storage import schema_drift


@pytest.fixture
def database(empty_database: str) -> Iterator[Database]:
    migrate(empty_database)
    opened = Database(empty_database, pool_size=1)
    yield opened
    opened.close()


def test_a_migrated_database_lacks_nothing(database: Database) -> None:
    assert schema_drift.list_missing(database) == []


def test_missing_tables_columns_indexes_and_references_are_listed(database: Database) -> None:
    with database.write() as writer:
        writer.execute("DROP TABLE staged_key")
        writer.execute("ALTER TABLE passage DROP COLUMN title")
        writer.execute("DROP INDEX entity_waiting_idx")
        writer.execute("ALTER TABLE session_round DROP CONSTRAINT session_round_session_fkey")
    assert schema_drift.list_missing(database) == [
        "column title of passage",
        "fk session_round_session_fkey of session_round",
        "index entity_waiting_idx of entity",
        "index staged_key_collection_id_passage_id_idx of staged_key",
        "table staged_key",
    ]


@pytest.mark.parametrize(
    ("statement", "missing"),
    [
        ("ALTER TABLE tenant DROP CONSTRAINT tenant_passages_check", "constraint tenant_passages_check of tenant"),
        (
            "ALTER TABLE ingest_error DROP CONSTRAINT ingest_error_pkey",
            "constraint ingest_error_pkey of ingest_error",
        ),
        ("ALTER TABLE ingest_error ALTER reason DROP NOT NULL", "NOT NULL of reason of ingest_error"),
        ("ALTER TABLE ingest_error ALTER reason TYPE bytea USING ''", "type of reason of ingest_error"),
        ("DROP SEQUENCE feedback_applied", "sequence feedback_applied"),
        ("DROP POLICY tenant ON passage", "row security of passage"),
        ("ALTER TABLE passage DISABLE ROW LEVEL SECURITY", "row security of passage"),
    ],
)
def test_whatever_else_is_missing_is_listed(database: Database, statement: str, missing: str) -> None:
    with database.write() as writer:
        writer.execute(statement)
    assert schema_drift.list_missing(database) == [missing]


def test_a_database_with_other_comments_lacks_nothing(database: Database) -> None:
    with database.write() as writer:
        writer.execute("COMMENT ON TABLE fact IS 'Another one.'")
        writer.execute("COMMENT ON TABLE judge IS NULL")
        writer.execute("COMMENT ON COLUMN fact.belief IS 'Another one.'")
    assert schema_drift.list_missing(database) == []
