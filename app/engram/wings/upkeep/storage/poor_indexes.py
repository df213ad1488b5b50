"""Vector indexes that find too few of the nearest."""

from engram.storage.database import Reader
from engram.storage.row_lookups import NOT_DELETED


def list_poor_indexes(reader: Reader, least: float) -> list[tuple[str, str, float]]:
    """Collection, table and recall of indexes that were found to find less than ``least``."""
    rows = reader.rows(
        f"""
        SELECT name, measured.key AS table, (measured.value ->> 'recall')::float8 AS recall
        FROM collection CROSS JOIN LATERAL jsonb_each(index_recall) AS measured
        WHERE {NOT_DELETED} AND (measured.value ->> 'recall')::float8 < %(least)s ORDER BY name, measured.key
        """,
        {"least": least},
    )
    return [tuple(row) for row in rows]
