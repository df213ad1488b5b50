"""Reads for measuring from which sufficiency on a collection shows answers, and the stored level."""

from dataclasses import asdict

from psycopg.types.json import Jsonb

from engram.storage.corpus.collections import COLUMNS, Collection, MeasuredLevel, build_from_row
from engram.storage.corpus.passages import SPREAD_IDS, SPREAD_PASSAGES
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import NOT_DELETED


def list_measurable(reader: Reader, least: int) -> list[Collection]:
    """List the collections of at least ``least`` passages, in id order, without copies of past moments."""
    rows = reader.rows(
        f"""
        SELECT {COLUMNS} FROM collection
        WHERE {NOT_DELETED} AND passage_count >= %(least)s AND past IS NULL ORDER BY id
        """,
        {"least": least},
    )
    return [build_from_row(row) for row in rows]


def sample_passages(reader: Reader, collection_id: int, limit: int) -> list[int]:
    """Return about ``limit`` passages, or all that there are: the first one from each of so many ids on."""
    rows = reader.rows(
        f"""
        WITH {SPREAD_IDS} SELECT DISTINCT p.id FROM {SPREAD_PASSAGES} ORDER BY p.id
        """,
        {"collection": collection_id, "limit": limit},
    )
    return [row.id for row in rows]


def keep(writer: Writer, collection_id: int, level: MeasuredLevel) -> None:
    """Store the level of a collection."""
    writer.execute(
        "UPDATE collection SET level = %(level)s WHERE id = %(id)s",
        {"id": collection_id, "level": Jsonb(asdict(level))},
    )
