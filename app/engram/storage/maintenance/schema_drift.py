"""Tables, columns, indexes and constraints that the schema should have and lacks."""

from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from engram.storage import citus_distribution
from engram.storage.database import Database
from engram.storage.tables import metadata


def list_missing(database: Database) -> list[str]:
    """Describe in words what the database lacks. Comments, extra indexes and partitions do not count."""
    with database.read() as reader:
        expected = (
            citus_distribution.build_distributed_schema() if citus_distribution.is_distributed(reader) else metadata
        )
    with database.open_for_inspection() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), expected)
    # A change of a column comes as a list of its own, and of vectors' dimensions the schema knows nothing.
    return sorted(
        _describe_change(change)
        for change in differences
        if isinstance(change, tuple) and change[0].startswith("add_") and change[0] != "add_table_comment"
    )


def _describe_change(change: Any) -> str:
    kind, *what = change
    named = next((part for part in reversed(what) if hasattr(part, "name")), None)
    table = getattr(getattr(named, "table", None), "name", None)
    where = f" of {table}" if table and table != getattr(named, "name", None) else ""
    return f"{kind.removeprefix('add_')} {getattr(named, 'name', named)}{where}"
