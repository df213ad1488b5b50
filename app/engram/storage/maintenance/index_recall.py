"""Recall of a vector index against exact search."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from engram.storage.column_parameters import integers
from engram.storage.corpus.collections import Collection, IndexRecall
from engram.storage.database import Reader
from engram.storage.half_vectors import unhalve
from engram.storage.question.nearest_neighbours import nearness
from engram.storage.question.query_focus import Vector

MEASURED_NEIGHBOURS = 10
SAMPLES = {"passage": "sentence", "question": "question"}
"""Tables whose indexes are measured, and whose rows they are searched for where too few questions were asked. Names
are none of them: one that is met by its embedding is near, or it is none."""
EQUAL_PRODUCTS = 1e-6
"""Inner products of unit vectors that differ by less are those of equals: either is as near."""


def breadth(reader: Reader) -> int:
    """The breadth of search that is configured, pgvector's ``hnsw.ef_search``."""
    count_matches: int = reader.scalar("SELECT current_setting('hnsw.ef_search')::int")
    return count_matches


def sample_questions(reader: Reader, collection: Collection, count: int) -> list[Vector]:
    """Vectors (d,) of the latest ``count`` questions that differ, latest first, of ten times as many queries."""
    rows = reader.rows(
        """
        SELECT embedding FROM (
            SELECT DISTINCT ON (question) embedding, created_at FROM (
                SELECT question, embedding, created_at FROM episode
                WHERE collection_id = %(collection)s AND space = %(space)s
                ORDER BY created_at DESC LIMIT 10 * %(count)s
            ) AS late ORDER BY question, created_at DESC
        ) AS apart ORDER BY created_at DESC LIMIT %(count)s
        """,
        {"collection": collection.id, "space": collection.space, "count": count},
    )
    return [row.embedding.to_numpy() for row in rows]


def draw_rows(reader: Reader, collection: Collection, table: str, count: int, seed: int) -> list[Vector]:
    """Vectors (d,) of ``count`` rows of ``SAMPLES[table]``, drawn by ``seed``; one may come twice."""
    source = SAMPLES[table]
    own = {"collection": collection.id}
    first, last = reader.row(
        f"""
        SELECT (SELECT id FROM {source} WHERE collection_id = %(collection)s ORDER BY id LIMIT 1) AS first,
               (SELECT id FROM {source} WHERE collection_id = %(collection)s ORDER BY id DESC LIMIT 1) AS last
        """,
        own,
    )
    if first is None:
        return []
    points = np.random.default_rng(seed).integers(first, last, size=count, endpoint=True)
    rows = reader.rows(
        f"""
        SELECT following.embedding FROM unnest(%(points)s::bigint[]) AS drawn(point) CROSS JOIN LATERAL (
            SELECT {unhalve("embedding")} AS embedding FROM {source}
            WHERE collection_id = %(collection)s AND id >= drawn.point ORDER BY id LIMIT 1
        ) AS following
        """,
        own | {"points": integers(points.tolist())},
    )
    return [row.embedding.to_numpy() for row in rows]


def measure_nearest(
    reader: Reader, collection: Collection, table: str, vector: Vector, *, exact: bool
) -> list[float]:
    """Distances of the nearest rows of a collection, ``exact``ly or as queries search its index."""
    near = nearness(collection, table, "embedding", "%(vector)s", exact=exact)
    rows = reader.rows(
        f"""
        SELECT distance FROM (
            SELECT {near.distance} AS distance FROM {table} WHERE {near.rows}
            ORDER BY {near.order} LIMIT {MEASURED_NEIGHBOURS}
        ) AS nearest ORDER BY distance
        """,
        {"collection": collection.id, "vector": vector},
    )
    return [row.distance for row in rows]


def replace_breadth(collection: Collection, table: str, breadth: int) -> Collection:
    """The collection as if its index of ``table`` had to be searched with the breadth ``breadth``."""
    recall = IndexRecall(recall=0.0, breadth=breadth, configured=0, rows=0, measured_at="")
    return replace(collection, indexed=[table], index_recall={table: recall})


def count_matches(exact: Sequence[float], got: Sequence[float]) -> int:
    """Count how many of the ``exact`` nearest an index ``got``, by distance;

    equal distances are interchangeable.
    """
    return min(len(exact), sum(distance <= exact[-1] + EQUAL_PRODUCTS for distance in got)) if exact else 0
