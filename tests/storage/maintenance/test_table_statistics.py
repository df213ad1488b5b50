"""Tables that outgrew what the planner knows of them."""

from collections.abc import Iterator

import pytest

from engram.storage.database import Database
from engram.storage.maintenance import table_statistics
from engram.storage.schema_revision import migrate


@pytest.fixture
def database(empty_database: str) -> Iterator[Database]:
    migrate(empty_database)
    opened = Database(empty_database, pool_size=1)
    yield opened
    opened.close()


def grow(database: Database, names: int) -> None:
    """Collections with names of 1,000 characters: eight to a page."""
    with database.write() as writer:
        writer.execute(
            """
            INSERT INTO collection (name, encoder_model, encoder_fingerprint, encoder_dimension)
            SELECT repeat('x', 1000) || n || '-' || (SELECT count(*) FROM collection), 'model', 'weights', 384
            FROM generate_series(1, %(n)s) AS n
            """,
            {"n": names},
        )


def outgrown(database: Database) -> list[str]:
    with database.read() as reader:
        return table_statistics.list_outgrown(reader)


def test_empty_database_has_no_outgrown_tables(database: Database) -> None:
    assert outgrown(database) == []


def test_a_table_is_named_from_eight_pages_on_and_then_from_four_times_as_many(database: Database) -> None:
    grow(database, 20)
    assert outgrown(database) == []  # three pages
    grow(database, 60)
    assert outgrown(database) == ["collection"]
    with database.administer() as administrator:
        table_statistics.analyse(administrator, "collection")
    assert outgrown(database) == []
    grow(database, 80)
    assert outgrown(database) == []  # twice as many
    grow(database, 240)
    assert outgrown(database) == ["collection"]
