"""Migrations: up, down, up again; they make the schema that the tables define."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, create_engine, inspect

import engram.migrations
from engram.context.errors import ConfigurationError, UnavailableError
from engram.storage.connection_pools import add_driver
from engram.storage.schema_revision import migrate
from engram.storage.tables import metadata
from tests.support import catalog, releases

NEXT_REVISION = """
from alembic import op

revision, down_revision, branch_labels, depends_on = "next", "2026.12", None, None
oldest_code = "2026.12"


def upgrade() -> None:
    op.execute("CREATE TABLE note (id int)")


def downgrade() -> None:
    op.execute("DROP TABLE note")
"""


@pytest.fixture
def engine(empty_database: str) -> Iterator[Engine]:
    engine = create_engine(add_driver(empty_database))
    yield engine
    engine.dispose()


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


def test_migrations_make_the_schema_that_the_tables_define(empty_database: str) -> None:
    migrate(empty_database)
    assert catalog.describe_database(empty_database) == catalog.describe_tables(empty_database)


SEEN_CHANGES = (
    "ALTER TABLE passage FORCE ROW LEVEL SECURITY",
    "GRANT TRUNCATE ON passage TO PUBLIC",
    "GRANT SELECT (title) ON passage TO PUBLIC",
    "GRANT SELECT ON SEQUENCE feedback_applied TO PUBLIC",
    "ALTER POLICY tenant ON passage TO pg_monitor",
    "CREATE TRIGGER once BEFORE UPDATE ON passage EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE STATISTICS titles ON collection_id, title FROM passage",
    "DROP EXTENSION plpgsql",
)


def test_the_comparison_of_catalogs_sees_each_change(empty_database: str, engine: Engine) -> None:
    migrate(empty_database)
    before = catalog.describe_database(empty_database)
    for statement in SEEN_CHANGES:
        with engine.begin() as connection:
            connection.exec_driver_sql(statement)
        after = catalog.describe_database(empty_database)
        assert after != before, statement
        before = after


def test_a_new_revision_of_an_unchanged_schema_is_empty(empty_database: str, engine: Engine) -> None:
    migrate(empty_database)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        assert compare_metadata(context, metadata) == []


def test_a_database_of_an_earlier_version_is_refused_and_left_as_it_is(empty_database: str, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num text); CREATE TABLE episode (id int)")
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('0004')")

    with pytest.raises(ConfigurationError, match=r"^migration: this database has schema 0004 of another version"):
        migrate(empty_database)

    assert table_names(engine) == {"episode"}


def test_naming_an_earlier_revision_goes_back_to_it(
    empty_database: str, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engram.migrations, "__file__", releases.add_revisions(tmp_path, NEXT_REVISION))
    assert migrate(empty_database) == "next"
    assert table_names(engine) == {*metadata.tables, "note"}
    assert migrate(empty_database, "2026.12") == "2026.12"
    assert table_names(engine) == set(metadata.tables)
    assert migrate(empty_database, "+1") == "next"


def test_an_unknown_revision_is_refused(empty_database: str) -> None:
    with pytest.raises(ConfigurationError, match="migration"):
        migrate(empty_database, "0000")


def test_a_server_that_is_not_there_cannot_be_migrated() -> None:
    with pytest.raises(UnavailableError):
        migrate("postgresql://nobody@127.0.0.1:1/nothing")
