"""Deleting collections: at once nobody finds one any more, then its rows go in pieces of bounded size.

One statement for all of a large collection would outlast the statement timeout, hold its locks for minutes, and
begin from the start whenever it is stopped. In pieces, each its own transaction, what went stays gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Table
from sqlalchemy.dialects import postgresql

from engram.storage.corpus.collection_lock import EXCLUSIVE, lock_row
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import NOT_DELETED
from engram.storage.tables.table_base import metadata

ROWS = 1_000
"""Rows of a piece, which takes 0.1 to 0.4 s."""
_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class DeletedPiece:
    """The number of a table's rows that went, and the last one's key, to go on after; None: no row is left."""

    rows: int
    last: Sequence[Any] | None


def begin(writer: Writer, collection_id: int) -> bool:
    """Hide the collection from everyone, and free its name; False if it was deleted before.

    Waits for transactions that write to it. Later ones find that it is gone.
    """
    if lock_row(writer, collection_id, EXCLUSIVE) is None:
        return False
    # A slash is in no collection's name.
    writer.execute(
        "UPDATE collection SET deleted_at = now(), name = '/' || id WHERE id = %(id)s",
        {"id": collection_id},
    )
    return True


def collections_to_delete(reader: Reader, tenant: str | None = None) -> list[int]:
    """Collections that were deleted and have rows left, the first deleted first; of one tenant, or of all."""
    rows = reader.rows(
        f"""
        SELECT id FROM collection
        WHERE NOT {NOT_DELETED} AND move IS NULL AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
        ORDER BY deleted_at, id
        """,
        {"tenant": tenant},
    )
    return [row.id for row in rows]


def tables() -> list[Table]:
    """List tables with rows of collections, the referring ones first, without tables of one row per collection."""
    deletable = [table for table in reversed(metadata.sorted_tables) if "collection_id" in table.columns]
    return [table for table in deletable if len(table.primary_key.columns) > 1]


def claim(writer: Writer, collection_id: int) -> bool:
    """Claim the removal of the collection's rows until the transaction ends; False if it is gone.

    Two removals take turns. Each statement after this one sees what the other has removed.
    """
    return lock_row(writer, collection_id, EXCLUSIVE, condition=f"NOT {NOT_DELETED}") is not None


def remove_piece(
    writer: Writer, collection_id: int, table: Table, after: Sequence[Any] | None = None
) -> DeletedPiece:
    """Remove the first rows of the table that follow the key ``after``, in the order of their keys.

    The key spares reading the index entries of rows that went before.
    """
    columns = [column for column in table.primary_key.columns if column.name != "collection_id"]
    key = ", ".join(f'"{column.name}"' for column in columns)
    # By ranges of the key, which leave the planner nothing to choose; it may believe that the table holds little.
    within = [f'FROM "{table.name}" WHERE collection_id = %(collection)s']
    parameters = {"collection": collection_id, "skipped": ROWS - 1}
    if after is not None:
        within.append(f"({key}) > ({_placeholders('after', columns)})")
        parameters |= {f"after{at}": value for at, value in enumerate(after)}
    last = writer.row(
        f"SELECT {key} {' AND '.join(within)} ORDER BY {key} LIMIT 1 OFFSET %(skipped)s",
        parameters,
    )
    if last is not None:
        within.append(f"({key}) <= ({_placeholders('last', columns)})")
        parameters |= {f"last{at}": value for at, value in enumerate(last)}
    deleted = writer.execute(f"DELETE {' AND '.join(within)}", parameters)
    return DeletedPiece(deleted, None if last is None else tuple(last))


def _placeholders(name: str, columns: "Sequence[Column[Any]]") -> str:
    return ", ".join(
        f"%({name}{at})s::{column.type.compile(dialect=_DIALECT)}" for at, column in enumerate(columns)
    )


def has_rows(reader: Reader, collection_id: int, table: Table) -> bool:
    """Whether the table has rows of the collection left.

    Call it before ``end``: Postgres marks removed rows in the index here, so ``end`` need not visit each.
    """
    statement = f'SELECT 1 FROM "{table.name}" WHERE collection_id = %(id)s LIMIT 1'
    return reader.row(statement, {"id": collection_id}) is not None


def end(writer: Writer, collection_id: int) -> None:
    """Remove the collection itself, and rows of transactions that did not check whether it exists."""
    parameters = {"id": collection_id}
    # No foreign keys lead from these: checking one would cost an ingest more than the posting itself.
    writer.execute("DELETE FROM lexical_posting WHERE collection_id = %(id)s", parameters)
    writer.execute("DELETE FROM episode WHERE collection_id = %(id)s", parameters)
    # Before the time expressions that they and what is kept of them refer to, which the cascade may come to first.
    writer.execute("DELETE FROM sentence WHERE collection_id = %(id)s", parameters)
    if writer.distributed:  # where no foreign keys lead to the collection: see ``citus_distribution``
        for table in reversed(metadata.sorted_tables):
            if "collection_id" in table.columns:
                writer.execute(f'DELETE FROM "{table.name}" WHERE collection_id = %(id)s', parameters)
    writer.execute("DELETE FROM collection WHERE id = %(id)s", parameters)
