"""Parts that the schema should have and lacks."""

from collections.abc import Iterator
from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import CheckConstraint, MetaData, PrimaryKeyConstraint

from engram.storage import citus_distribution, row_security
from engram.storage.database import Database, Reader
from engram.storage.tables import list_sequences, metadata

CHANGED = {"modify_nullable": "NOT NULL", "modify_type": "type"}
"""Changes of a column, in the words of Alembic and in ours."""


def list_missing(database: Database) -> list[str]:
    """Describe in words what the database lacks.

    Compared are tables, columns with their types and NOT NULL, indexes, constraints, sequences, and on which tables
    row security holds. Of check constraints and primary keys only the names are compared, of sequences as well. Not
    compared are defaults, the text of policies, grants, storage options, statistics and comments. Extra indexes and
    partitions do not count.
    """
    with database.read() as reader:
        is_distributed = citus_distribution.is_distributed(reader)
        expected = citus_distribution.build_distributed_schema() if is_distributed else metadata
        missing = [*_list_missing_names(reader, expected)]
        missing += [f"row security of {table}" for table in row_security.list_unprotected(reader)]
        missing += [f"the policy of readers on {table}" for table in row_security.list_unbound(reader)]
        if is_distributed and (closed := citus_distribution.count_closed_shards(reader)):
            missing.append(f"open row security on {closed} shards, see engram distribute")
    with database.open_for_inspection() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), expected)
    for change in differences:
        if isinstance(change, list):  # of one column
            missing += [
                f"{CHANGED[kind]} of {column} of {table}"
                for kind, _, table, column, *_ in change
                if kind in CHANGED
            ]
        elif change[0].startswith("add_") and change[0] != "add_table_comment":
            missing.append(_describe_change(change))
    return sorted(missing)


def _list_missing_names(reader: Reader, expected: MetaData) -> Iterator[str]:
    """Describe what Alembic overlooks: sequences, and of existing tables check constraints and primary keys."""
    rows = reader.rows(
        """
        SELECT t.relname AS table, t.relkind = 'S' AS is_sequence, array_agg(c.conname::text) AS constraints
        FROM pg_class t LEFT JOIN pg_constraint c ON c.conrelid = t.oid
        WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind IN ('r', 'p', 'S')
        GROUP BY t.oid, t.relname, t.relkind
        """
    )
    constraints = {row.table: row.constraints for row in rows if not row.is_sequence}
    for table in expected.tables.values():
        for constraint in table.constraints if table.name in constraints else ():
            if (
                isinstance(constraint, CheckConstraint | PrimaryKeyConstraint)
                and constraint.name not in constraints[table.name]
            ):
                yield f"constraint {constraint.name} of {table.name}"
    sequences = {row.table for row in rows if row.is_sequence}
    yield from (f"sequence {one.name}" for one in list_sequences() if one.name not in sequences)


def _describe_change(change: Any) -> str:
    kind, *what = change
    named = next((part for part in reversed(what) if hasattr(part, "name")), None)
    table = getattr(getattr(named, "table", None), "name", None)
    where = f" of {table}" if table and table != getattr(named, "name", None) else ""
    return f"{kind.removeprefix('add_')} {getattr(named, 'name', named)}{where}"
