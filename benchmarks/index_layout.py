"""Where do vector indexes belong: over all collections, over parts of them, or only where a collection is large?

    python benchmarks/index_layout.py DATASET_DIR [--small N] [--large N] [--rows N] [--searches N]

DATASET_DIR is a BEIR folder; its passages are embedded once and every collection draws its vectors from them, each
mixed with 0.3 times another, so that no two are equal. Three layouts of the same rows, each in a database of its
own beside the configured one, dropped at the end:

- shared: one table, one HNSW index over all collections;
- hashed: the table partitioned by the collection's hash (eight parts), an HNSW index on each;
- by size: one table, and a partial HNSW index for each collection that is too large to be searched exactly.

Rows are inserted as ingest does, a batch per statement, small collections (100 rows) first, then the large ones;
a layout's partial indexes are built once a collection is complete. The floor is the same table without a vector
index.
Small collections are searched exactly, large ones by the index, at the service's ef_search with iterative scan.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import Vector
from pgvector.psycopg import register_vector
from sqlalchemy.engine import make_url

import common
from engram.composition.servers import HNSW_EF_SEARCH

SMALL_ROWS = 100
PARTS = 8
BATCH = 500
TOP_K = 10
HEADER = (
    "layout",
    "small rows/s",
    "of floor",
    "large rows/s",
    "of floor",
    "build s",
    "index MiB",
    "small p50 ms",
    "large p50 ms",
    "large recall@10",
    "planning ms",
)
HNSW = "USING hnsw (embedding vector_ip_ops)"
Matrix = NDArray[np.float32]
Connection = psycopg.Connection[Any]


@dataclass(frozen=True, slots=True)
class Corpus:
    """Collections by id, small ones first, each with its vectors (n, d), and what is searched for (q, d)."""

    small: dict[int, Matrix]
    large: dict[int, Matrix]
    searches: Matrix


def corpus(base: Matrix, small: int, large: int, rows: int, searches: int) -> Corpus:
    """Collections drawn from the same texts, with no vector twice."""
    draw = np.random.default_rng(0)

    def draw_vectors(count: int) -> Matrix:
        mixed = base[draw.integers(len(base), size=count)] + 0.3 * base[draw.integers(len(base), size=count)]
        unit: Matrix = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
        return unit.astype(np.float32)

    return Corpus(
        {number: draw_vectors(SMALL_ROWS) for number in range(1, small + 1)},
        {number: draw_vectors(rows) for number in range(small + 1, small + large + 1)},
        draw_vectors(searches),
    )


def prepare(connection: Connection, layout: str, dimension: int) -> None:
    """The layout's table and indexes, as long as they do not wait for rows."""
    connection.execute("CREATE EXTENSION vector")
    register_vector(connection)
    parted = " PARTITION BY HASH (collection_id)" if layout == "hashed" else ""
    connection.execute(
        f"CREATE TABLE item (collection_id bigint, id bigint, embedding vector({dimension}) NOT NULL, "
        f"PRIMARY KEY (collection_id, id)){parted}"
    )
    for part in range(PARTS if parted else 0):
        connection.execute(
            f"CREATE TABLE item_{part} PARTITION OF item FOR VALUES WITH (MODULUS {PARTS}, REMAINDER {part})"
        )
        connection.execute(f"ALTER TABLE item_{part} ALTER COLUMN embedding SET STORAGE PLAIN")
    connection.execute("ALTER TABLE item ALTER COLUMN embedding SET STORAGE PLAIN")
    if layout in {"shared", "hashed"}:
        connection.execute(f"CREATE INDEX item_hnsw ON item {HNSW}")


def insert(connection: Connection, collections: dict[int, Matrix]) -> float:
    """Write the collections; rows a second."""
    began, count = time.perf_counter(), 0
    for number, vectors in collections.items():
        for start in range(0, len(vectors), BATCH):
            part = [Vector(vector) for vector in vectors[start : start + BATCH]]
            connection.execute(
                "INSERT INTO item SELECT %b, n, v FROM unnest(%b::bigint[], %b::vector[]) AS new(n, v)",
                (number, list(range(start, start + len(part))), part),
            )
            count += len(part)
    return count / (time.perf_counter() - began)


def search(connection: Connection, number: int, vector: Matrix, *, exact: bool) -> list[int]:
    """The nearest rows of a collection. Its number stands in the text: a partial index must be recognised."""
    order = "(embedding <#> %b) + 0" if exact else "embedding <#> %b"
    rows = connection.execute(
        f"SELECT id FROM item WHERE collection_id = {number} ORDER BY {order} LIMIT {TOP_K}", (Vector(vector),)
    )
    return [row[0] for row in rows]


def time_searches(
    connection: Connection, numbers: Sequence[int], searches: Matrix, *, exact: bool
) -> tuple[float, float]:
    """p50 of a search in ms, and its recall@10 against an exact one."""
    took, found = [], []
    for at, vector in enumerate(searches):
        number = numbers[at % len(numbers)]
        began = time.perf_counter()
        near = search(connection, number, vector, exact=exact)
        took.append((time.perf_counter() - began) * 1000.0)
        wanted = set(near) if exact else set(search(connection, number, vector, exact=True))
        found.append(len(wanted & set(near)) / TOP_K)
    return common.percentiles(took)[0], float(np.mean(found))


def measure_planning(connection: Connection, number: int, vector: Matrix) -> float:
    """What planning a search takes, ms."""
    plans = [
        connection.execute(
            f"EXPLAIN (ANALYZE, SUMMARY, FORMAT JSON) SELECT id FROM item WHERE collection_id = {number} "
            f"ORDER BY embedding <#> %b LIMIT {TOP_K}",
            (Vector(vector),),
        ).fetchone()
        for _ in range(5)
    ]
    return float(np.median([plan[0][0]["Planning Time"] for plan in plans if plan is not None]))


def measure_layout(
    connection: Connection, layout: str, data: Corpus, ef_search: int, floor: Sequence[float]
) -> list[Any]:
    """One row of the table; the floor's two rates are its own."""
    prepare(connection, layout, data.searches.shape[1])
    small, large = insert(connection, data.small), insert(connection, data.large)
    began = time.perf_counter()
    if layout == "by size":
        for number in data.large:
            connection.execute(f"CREATE INDEX item_hnsw_{number} ON item {HNSW} WHERE collection_id = {number}")
    built = time.perf_counter() - began
    connection.execute("ANALYZE item")
    connection.execute(f"SET hnsw.ef_search = {ef_search}; SET hnsw.iterative_scan = 'relaxed_order'")
    indexes = connection.execute(
        "SELECT coalesce(sum(pg_relation_size(i.oid)), 0) FROM pg_class i JOIN pg_am m ON m.oid = i.relam "
        "WHERE m.amname = 'hnsw'"
    ).fetchone()
    exact, _ = time_searches(connection, list(data.small), data.searches, exact=True)
    indexed, recall = time_searches(connection, list(data.large), data.searches, exact=layout == "floor")
    over = floor or (small, large)
    size = 0.0 if indexes is None else float(indexes[0]) / 2**20
    plan = measure_planning(connection, next(iter(data.small)), data.searches[0])
    return [layout, small, small / over[0], large, large / over[1], built, size, exact, indexed, recall, plan]


def open_database(url: str) -> Iterator[Connection]:
    """A connection to a new database beside this one, dropped at the end."""
    address = make_url(url).set(drivername="postgresql")
    name = f"layout_{uuid4().hex}"
    with psycopg.connect(address.render_as_string(hide_password=False), autocommit=True) as beside:
        beside.execute(f'CREATE DATABASE "{name}"')
        try:
            of_its_own = address.set(database=name).render_as_string(hide_password=False)
            with psycopg.connect(of_its_own, autocommit=True) as connection:
                yield connection
        finally:
            beside.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--passages", type=int, default=3_000)
    parser.add_argument("--small", type=int, default=200)
    parser.add_argument("--large", type=int, default=2)
    parser.add_argument("--rows", type=int, default=25_000, help="of a large collection")
    parser.add_argument("--searches", type=int, default=100)
    given = parser.parse_args()
    with common.application() as (app, addresses):
        texts = [passage["text"] for passage in common.passages(given.dataset, given.passages)]
        base = np.asarray(app.models.embedder.embed(texts), dtype=np.float32)
        data = corpus(base, given.small, given.large, given.rows, given.searches)
        rows: list[list[Any]] = []
        for layout in ("floor", "shared", "hashed", "by size"):
            floor = (rows[0][1], rows[0][3]) if rows else ()
            for connection in open_database(addresses.database_url):
                rows.append(measure_layout(connection, layout, data, HNSW_EF_SEARCH, floor))
        common.table(HEADER, rows)


if __name__ == "__main__":
    main()
