"""Migrations: up, down, up again, and nothing between what they make and what the tables say."""

from collections.abc import Iterator
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import CheckConstraint, Engine, create_engine, inspect

from engram.context.errors import ConfigurationError, UnavailableError
from engram.storage.connection_pools import add_driver
from engram.storage.database import Database
from engram.storage.schema_revision import migrate
from engram.storage.tables import metadata


@pytest.fixture
def engine(empty_database: str) -> Iterator[Engine]:
    engine = create_engine(add_driver(empty_database))
    yield engine
    engine.dispose()


@pytest.fixture
def migrated(empty_database: str) -> Iterator[Database]:
    migrate(empty_database)
    database = Database(empty_database, pool_size=2)
    yield database
    database.close()


def compare_types(
    _context: Any, _inspected: Any, _column: Any, inspected_type: Any, metadata_type: Any
) -> bool | None:
    return False if type(inspected_type).__name__ == type(metadata_type).__name__ == "VECTOR" else None


def table_names(engine: Engine) -> set[str]:
    return set(inspect(engine).get_table_names()) - {"alembic_version"}


def test_the_schema_goes_up_down_and_up_again(empty_database: str, engine: Engine) -> None:
    migrate(empty_database)
    assert table_names(engine) == set(metadata.tables)

    migrate(empty_database, "base")
    assert table_names(engine) == set()
    assert inspect(engine).get_sequence_names() == []

    migrate(empty_database)
    migrate(empty_database)
    assert table_names(engine) == set(metadata.tables)


def test_migrations_add_up_to_the_tables(empty_database: str, engine: Engine) -> None:
    migrate(empty_database)
    with engine.connect() as connection:
        options = {"compare_type": compare_types, "compare_server_default": True}
        assert compare_metadata(MigrationContext.configure(connection, opts=options), metadata) == []


def test_check_constraints_of_the_tables_are_in_the_schema(empty_database: str, engine: Engine) -> None:
    migrate(empty_database)
    for table in metadata.tables.values():
        wanted = {str(c.name) for c in table.constraints if isinstance(c, CheckConstraint)}
        assert {found["name"] for found in inspect(engine).get_check_constraints(table.name)} == wanted


def test_a_database_of_an_earlier_version_is_refused_and_left_as_it_is(empty_database: str, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num text); CREATE TABLE episode (id int)")
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('0004')")

    with pytest.raises(ConfigurationError, match=r"^migration: this database has schema 0004 of another version"):
        migrate(empty_database)

    assert table_names(engine) == {"episode"}


def test_vectors_of_a_hop_are_stored_in_the_row(migrated: Database) -> None:
    with migrated.read() as reader:
        in_row = reader.rows(
            """
            SELECT attrelid::regclass::text FROM pg_attribute
            WHERE atttypid = 'vector'::regtype AND attstorage = 'm' AND attnum > 0
            """
        )
    assert {"sentence", "sentence_memory", "passage", "entity"} <= {row[0] for row in in_row}


def test_an_unknown_revision_is_refused(empty_database: str) -> None:
    with pytest.raises(ConfigurationError, match="migration"):
        migrate(empty_database, "0000")


def test_a_server_that_is_not_there_cannot_be_migrated() -> None:
    with pytest.raises(UnavailableError):
        migrate("postgresql://nobody@127.0.0.1:1/nothing")
