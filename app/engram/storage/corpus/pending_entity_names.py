"""Names that wait for their embedding: entities whose passages can be found already."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.storage.column_parameters import Vectors
from engram.storage.corpus.collections import COLUMNS, Collection, build_from_row
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import NOT_DELETED


@dataclass(frozen=True, slots=True)
class Name:
    """An entity as it is called."""

    id: int
    surface: str


def collections_waiting(
    reader: Reader, fingerprints: Sequence[str], collection_id: int | None = None
) -> list[Collection]:
    """Collections of encoders with these fingerprints where names wait; ``collection_id``: that one only."""
    if reader.distributed:  # there is no look from a table of all nodes into those of single ones
        waiting = reader.rows("SELECT DISTINCT collection_id FROM entity WHERE embedding IS NULL")
        rows = reader.rows(
            f"""
            SELECT {COLUMNS} FROM collection
            WHERE encoder_fingerprint = ANY(%(fingerprints)s) AND {NOT_DELETED} AND id = ANY(%(waiting)s)
              AND (%(id)s::bigint IS NULL OR id = %(id)s)
            ORDER BY id
            """,
            {
                "fingerprints": list(fingerprints),
                "id": collection_id,
                "waiting": [row.collection_id for row in waiting],
            },
        )
        return [build_from_row(row) for row in rows]
    rows = reader.rows(
        f"""
        SELECT {COLUMNS} FROM collection c
        WHERE encoder_fingerprint = ANY(%(fingerprints)s) AND {NOT_DELETED}
          AND (%(id)s::bigint IS NULL OR id = %(id)s)
          AND (SELECT e.id FROM entity e WHERE e.collection_id = c.id AND e.embedding IS NULL
               ORDER BY e.collection_id, e.id LIMIT 1) IS NOT NULL
        ORDER BY id
        """,
        {"fingerprints": list(fingerprints), "id": collection_id},
    )
    return [build_from_row(row) for row in rows]


def list_next(reader: Reader, collection_id: int, after: int, limit: int) -> list[Name]:
    """The next names that wait, in id order, those after ``after``."""
    rows = reader.rows(
        """
        SELECT id, surface FROM entity WHERE collection_id = %(collection)s AND embedding IS NULL AND id > %(after)s
        ORDER BY id LIMIT %(limit)s
        """,
        {"collection": collection_id, "after": after, "limit": limit},
    )
    return [Name(row.id, row.surface) for row in rows]


def give(writer: Writer, collection: Collection, names: Sequence[Name], embeddings: NDArray[np.float32]) -> int:
    """Give names their embeddings, (n, d); how many were still there and waited.

    One that another transaction holds, to remove it, is passed over, so nobody is waited for; and all, if the
    collection has become another encoder's.
    """
    return writer.execute(
        """
        WITH given AS MATERIALIZED (
            SELECT * FROM unnest(%(ids)s::bigint[], %(embeddings)s::vector[]) AS given(id, embedding)
        ), held AS MATERIALIZED (
            SELECT e.id FROM entity e WHERE e.collection_id = %(collection)s AND e.id = ANY(%(ids)s::bigint[])
              AND e.embedding IS NULL
              AND (SELECT c.space FROM collection c WHERE c.id = %(collection)s) = %(space)s
            ORDER BY e.id FOR NO KEY UPDATE SKIP LOCKED
        )
        UPDATE entity SET embedding = given.embedding FROM held JOIN given USING (id)
        WHERE entity.collection_id = %(collection)s AND entity.id = held.id
        """,
        {
            "collection": collection.id,
            "space": collection.space,
            "ids": [name.id for name in names],
            "embeddings": Vectors(embeddings),
        },
    )


def is_ingesting(reader: Reader) -> bool:
    """Whether a worker has an ingest in hand, of any collection."""
    return bool(reader.scalar("SELECT EXISTS (SELECT 1 FROM job WHERE status = 'running' AND kind = 'ingest')"))
