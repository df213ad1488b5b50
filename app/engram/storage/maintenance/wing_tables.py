"""Whole tables of wings: whether they hold rows, and emptying them."""

from collections.abc import Sequence

from engram.storage.database import Reader, Writer


def list_filled(reader: Reader, tables: Sequence[str]) -> list[str]:
    """List those of the tables that hold a row."""
    return [table for table in tables if reader.row(f'SELECT 1 FROM "{table}" LIMIT 1') is not None]


def empty(writer: Writer, tables: Sequence[str]) -> None:
    """Remove all rows of the tables. Waits for whoever uses them."""
    names = ", ".join(f'"{table}"' for table in tables)
    writer.execute(f"TRUNCATE {names}")
