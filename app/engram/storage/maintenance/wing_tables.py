"""Rows of wings in all collections: those of their tables, and their jobs."""

from collections.abc import Sequence

from engram.storage.database import Reader, Writer
from engram.storage.jobs.jobs import OPEN_JOB


def list_filled(reader: Reader, tables: Sequence[str]) -> list[str]:
    """List those of the tables that hold a row."""
    return [table for table in tables if reader.row(f'SELECT 1 FROM "{table}" LIMIT 1') is not None]


def empty(writer: Writer, tables: Sequence[str]) -> None:
    """Remove all rows of the tables. Waits for whoever uses them."""
    names = ", ".join(f'"{table}"' for table in tables)
    writer.execute(f"TRUNCATE {names}")


def list_open_jobs(reader: Reader, kinds: Sequence[str]) -> list[str]:
    """List those of the kinds of jobs of which some are open."""
    rows = reader.rows(
        f"SELECT DISTINCT kind FROM job WHERE kind = ANY(%(kinds)s) AND {OPEN_JOB} ORDER BY kind",
        {"kinds": [*kinds]},
    )
    return [row.kind for row in rows]


def remove_jobs(writer: Writer, kinds: Sequence[str]) -> None:
    """Remove all jobs of these kinds, open or not."""
    writer.execute("DELETE FROM job WHERE kind = ANY(%(kinds)s)", {"kinds": [*kinds]})
