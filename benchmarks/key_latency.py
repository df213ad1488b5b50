"""What do evolved keys cost a query, and what does widening the question at query time cost instead?

    python benchmarks/key_latency.py DATASET_DIR [--collection NAME] [--questions N]

DATASET_DIR is a BEIR folder whose corpus was ingested (`engram ingest -c NAME corpus.jsonl.gz`); its questions are
asked by strategy 'dense'. DATABASE_URL and REDIS_URL, or the embedded servers of ENGRAM_DATA_DIR, are used as they
are.

It is measured on a copy of the collection's passages and terms, so that whoever else uses the collection is neither
disturbed nor disturbs; the copy is removed in the end. Every second passage of it gets an evolved key: its base key
turned by a random direction of strength 0.7.

Base keys are what memory 'off' reads, which is what a collection without evolved keys is asked. Every question is
asked in every way in turn, in another order each time, so that load on the machine falls on all alike; read the
ratios. The bar: evolved keys cost at most 1.10 of base keys' p50, searched exactly and with the HNSW index. For the
latter, sorting and sequential scans are disabled in both ways, so that the planner takes the index however small
the collection is.

Expansions are either there already, and only have to be embedded, or are made for each question by pseudo-relevance
feedback: what expansions that verdicts put into the keys spare every later question.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from pgvector.psycopg import register_vector

import common
from engram.composition.container import Application, Servers
from engram.core.filter.logged_verdict import Expansion
from engram.services.question.caches import PassageKeyCache
from engram.services.question.pipeline import QuestionPipeline
from engram.services.question.query import Memory, Query
from engram.services.question.search import RetrievalService
from engram.storage.database import Database
from query_latency import Way, measure_interleaved

BAR = 1.10
STRENGTH = 0.7
TOP_K = 10
WARM_UP = 10
INDEX_ONLY = "-c%20enable_sort=off%20-c%20enable_seqscan=off"
COPIED_COLUMNS = {
    "passage": "id, external_id, title, text, metadata, content_hash, embedding",
    "lexical_term": "id, term, passage_count",
    "lexical_posting": "term_id, passage_id, frequency, length",
    "lexical_passage": "passage_id, analyser, length, term_ids",
}
"""What a plain search and pseudo-relevance feedback read."""

Connection = psycopg.Connection[tuple[Any, ...]]


def copy(connection: Connection, source: int, name: str) -> int:
    """Give the empty collection ``name`` the passages and terms of ``source``; its id."""
    with connection.transaction():
        (target,) = connection.execute(
            """
            UPDATE collection SET passage_count = given.passage_count, lexical_length = given.lexical_length
            FROM collection given WHERE collection.name = %s AND given.id = %s RETURNING collection.id
            """,
            (name, source),
        ).fetchall()[0]
        for table, columns in COPIED_COLUMNS.items():
            connection.execute(
                f"INSERT INTO {table} (collection_id, {columns}) "
                f"SELECT %s, {columns} FROM {table} WHERE collection_id = %s",
                (target, source),
            )
    return int(target)


def evolve(connection: Connection, collection: int, seed: int) -> int:
    """Give half of the passages evolved keys; how many these are."""
    rows = connection.execute(
        "SELECT id, embedding FROM passage WHERE collection_id = %s ORDER BY id", (collection,), binary=True
    ).fetchall()[::2]
    bases = np.array([row[1].to_numpy() for row in rows], dtype=np.float32)
    directions = np.random.default_rng(seed).normal(size=bases.shape)
    keys = bases + STRENGTH * directions / np.linalg.norm(directions, axis=1, keepdims=True)
    keys = (keys / np.linalg.norm(keys, axis=1, keepdims=True)).astype(np.float32)
    with connection.transaction(), connection.cursor() as cursor:
        columns = "collection_id, passage_id, generation, vector, units, scores"
        with cursor.copy(f"COPY passage_key ({columns}) FROM STDIN (FORMAT BINARY)") as stream:
            stream.set_types(["bigint", "bigint", "bigint", "vector", "bigint[]", "float8[]"])
            for row, key in zip(rows, keys, strict=True):
                stream.write_row((collection, row[0], 1, key, [], []))
        cursor.execute("UPDATE collection SET key_generation = 1 WHERE id = %s", (collection,))
    return len(rows)


def retrieval(app: Application, database: Database, *, exact: bool) -> QuestionPipeline:
    """The service, with vector indexes or without."""
    limits = replace(app.models.limits, exact=exact)
    retrieve = RetrievalService(
        database,
        replace(app.retrieval.planner, limits=limits),
        app.models.priors,
        PassageKeyCache(0),
        app.retrieval.graph_cache,
        app.retrieval.question_spreads,
        threshold=1.0,
    )
    return QuestionPipeline(database, app.auth.reads, retrieve, durable=app.settings.episodes_durable)


def build_way(app: Application, ask: QuestionPipeline, collection: str, memory: Memory) -> Way:
    return lambda question: ask.answer(
        Query(text=question, scope=app.auth.access.scope(collection), top_k=TOP_K, memory=memory, strategy="dense")
    )


def build_expanding_way(
    app: Application, service: QuestionPipeline, collection: str, units: dict[str, list[Expansion]]
) -> Way:
    """Ask with expansions on base keys: those of ``units``, or, for a question that has none there, made for it."""

    def ask(question: str) -> object:
        found = (
            units[question]
            if question in units
            else app.retrieval.expand.expand(app.auth.access.scope(collection), question, ["prf"])
        )
        return service.answer(
            Query(
                text=question,
                scope=app.auth.access.scope(collection),
                top_k=TOP_K,
                memory="off",
                strategy="dense",
                expansions=found,
            )
        )

    return ask


def measure(app: Application, addresses: Servers, source: str, questions: list[str], seed: int) -> bool:
    """Print the table; whether the bar is met."""
    options = f"{'&' if '?' in addresses.database_url else '?'}options={INDEX_ONLY}"
    indexed = Database(addresses.database_url + options, hnsw_ef_search=app.settings.hnsw_ef_search)
    connection: Connection = psycopg.connect(addresses.database_url.replace("+psycopg", ""), autocommit=True)
    register_vector(connection)
    try:
        with common.scratch_collection(app) as name:
            target = copy(connection, app.auth.access.scope(source).collection.id, name)
            keys = evolve(connection, target, seed)
            connection.execute("VACUUM (ANALYZE) passage, passage_key, lexical_posting, lexical_term")
            common.index_all(app)
            size = app.auth.access.scope(name).collection.passage_count
            print(f"{source}: {size} passages, {keys} with an evolved key; {len(questions)} questions")
            given = {
                question: app.retrieval.expand.expand(app.auth.access.scope(name), question, ["prf"])
                for question in questions
            }
            exact, hnsw = retrieval(app, app.database, exact=True), retrieval(app, indexed, exact=False)
            ways = {
                "exact, base keys": build_way(app, exact, name, "off"),
                "exact, evolved keys": build_way(app, exact, name, "read"),
                "HNSW, base keys": build_way(app, hnsw, name, "off"),
                "HNSW, evolved keys": build_way(app, hnsw, name, "read"),
                "exact, base keys, expansions given": build_expanding_way(app, exact, name, given),
                "exact, base keys, expansions made": build_expanding_way(app, exact, name, {}),
            }
            measure_interleaved(ways, questions[:WARM_UP], seed)
            samples = measure_interleaved(ways, questions, seed)
    finally:
        connection.close()
        indexed.close()
    base = {way: common.percentiles(samples[f"{way}, base keys"]) for way in ("exact", "HNSW")}
    lines, ratios = [], []
    for way in ways:
        half, most = common.percentiles(samples[way])
        floor = base[way.split(",")[0]]
        lines.append((way, half, most, half / floor[0], most / floor[1]))
        if way.endswith("evolved keys"):
            ratios.append(half / floor[0])
    common.table(["dense queries", "p50 ms", "p95 ms", "p50 over base keys", "p95 over base keys"], lines)
    met = max(ratios) <= BAR
    print(f"bar {BAR:.2f} on p50 of evolved over base keys: {'met' if met else 'missed'}")
    return met


def main() -> None:
    parser = argparse.ArgumentParser(description="Latency of dense queries with and without evolved keys.")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--collection", help="Default: the folder's name.")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    asked = list(dict.fromkeys(common.questions(arguments.dataset, arguments.questions)))
    with common.application() as (app, addresses):
        name = arguments.collection or arguments.dataset.resolve().name
        met = measure(app, addresses, name, asked, arguments.seed)
    sys.exit(0 if met else 1)


if __name__ == "__main__":
    main()
