"""What does a caller find who sees one passage in a hundred, and how long does it take?

    python benchmarks/visible_recall.py [--passages N] [--share PERCENT ...] [--questions N] [--strategy S]

Makes a collection of drawn unit vectors in the configured database, a sentence for each passage among them, with
the vector index that maintenance builds for this size, and removes it at the end. Vectors in all directions are
harder for an index than those of texts. Of the passages a share has readers who are asked for, all others have
other readers. Each question is a drawn vector, asked by a caller who is the reader, and by one who sees everything,
in turn. With strategy "dense", recall is that of the ten best against an exact search of the visible passages in
NumPy; with "graph" (profile `default`), against what the same caller is shown where nothing uses the index and
nothing narrows the search to the visible passages: Postgres then reads all of them.
"""

import argparse
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import common
from engram.composition.container import Application
from engram.context import tenancy
from engram.services.auth.scope import LOCAL, Scope
from engram.services.question.plan import QueryPlan, QueryPlanner
from engram.services.question.query import Query, Strategy
from engram.storage.column_parameters import vectors
from engram.storage.corpus import collections, reader_sets
from query_latency import measure_interleaved

TOP_K = 10
ROWS_PER_WRITE = 5_000
COMPARED = 30
"""Questions of which the whole search is repeated exactly."""
OTHERS = ("group:others",)


class DrawnVectors(common.WrappedEncoder):
    """An encoder whose vector of a text is drawn, always the same."""

    def embed(self, texts: Sequence[str], **_: object) -> NDArray[np.float32]:
        """Unit vectors, (texts, dimension)."""
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) for text in texts]
        drawn = [_draw(1, self.dimension, seed)[0] for seed in seeds]
        return np.array(drawn, dtype=np.float32).reshape(-1, self.dimension)

    embed_questions = embed


def _draw(count: int, dimension: int, seed: int) -> NDArray[np.float32]:
    drawn = np.random.default_rng(seed).normal(size=(count, dimension))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), dtype=np.float32)


def fill(
    app: Application,
    name: str,
    held: NDArray[np.float32],
    said: NDArray[np.float32],
    readers: Sequence[tuple[str, ...]],
) -> None:
    """Write a passage for each vector ``held``, with a sentence and its readers, and index them."""
    target = app.auth.access.scope(name).collection.id
    for start in range(0, len(held), ROWS_PER_WRITE):
        some = slice(start, start + ROWS_PER_WRITE)
        with app.database.write_long() as writer:
            sets = reader_sets.make(writer, target, set(readers[some]))
            writer.execute(
                """
                INSERT INTO passage
                    (collection_id, external_id, text, language, content_hash, embedding, reader_set_id)
                SELECT %(c)s, (%(start)s + n - 1)::text, 'A text.', 'en', ''::bytea, v, s
                FROM unnest(%(vectors)s::vector[], %(sets)s::bigint[]) WITH ORDINALITY AS drawn(v, s, n)
                """,
                {
                    "c": target,
                    "start": start,
                    "vectors": vectors(list(held[some])),
                    "sets": [sets[one] for one in readers[some]],
                },
            )
            writer.execute(
                """
                INSERT INTO sentence (collection_id, passage_id, position, text, embedding, reader_set_id)
                SELECT %(c)s, held.id, 0, 'A text.', v, held.reader_set_id
                FROM unnest(%(vectors)s::vector[]) WITH ORDINALITY AS drawn(v, n)
                JOIN passage held ON held.collection_id = %(c)s AND held.external_id = (%(start)s + n - 1)::text
                """,
                {"c": target, "start": start, "vectors": vectors(list(said[some]))},
            )
            count = len(held[some])
            collections.add_counts(writer, target, passages=count, sentences=count, entities=0, lexical_length=0.0)
    reports = app.maintenance.indexes.run()
    if reports is None:
        raise SystemExit("another process maintains the indexes")
    for report in reports:
        print(f"index {report.index}: {report.recall} of the ten nearest at breadth {report.breadth}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Recall and time of callers who see few passages.")
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--share", type=float, nargs="+", default=[1.0], help="Percent of the passages.")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--strategy", choices=["dense", "graph"], default="graph")
    arguments = parser.parse_args()
    questions = [f"question {number}" for number in range(arguments.questions)]

    with common.application(embedder=DrawnVectors) as (app, _), common.scratch_collection(app) as name:
        held = _draw(arguments.passages, app.models.embedder.dimension, seed=1)
        draws = np.random.default_rng(2).random(len(held)) * 100
        bounds = np.cumsum(arguments.share)
        groups = [(f"group:{share:g}%",) for share in arguments.share]
        owners = [*groups, OTHERS]
        owner = np.searchsorted(bounds, draws, side="right")
        said = _draw(arguments.passages, app.models.embedder.dimension, seed=3)
        fill(app, name, held, said, [owners[one] for one in owner])
        scope = app.auth.access.scope(name)
        found: dict[str, list[set[int]]] = {}
        callers: dict[str, tenancy.ReaderNames | None] = {}

        def build_way(label: str, readers: tenancy.ReaderNames | None) -> Callable[[str], object]:
            found[label], callers[label] = [], readers

            def ask(question: str) -> object:
                with tenancy.restrict_to(LOCAL.tenant, readers):
                    found[label].append(_ask(app, scope, question, arguments.strategy))
                return None

            return ask

        ways = {"everything": build_way("everything", None)}
        seen = {"everything": np.arange(len(held))}
        for at, (group,) in enumerate(groups):
            ways[group] = build_way(group, tenancy.ReaderNames((group,)))
            seen[group] = np.flatnonzero(owner == at)
        measure_interleaved(ways, questions[:20], 0)
        for asked in found.values():
            asked.clear()
        times = measure_interleaved(ways, questions, 1)
        asked_vectors = app.models.embedder.embed(questions)

        def measure_recall(label: str) -> float:
            if arguments.strategy == "dense":
                return _measure_recall(held, seen[label], asked_vectors, found[label])
            exactly = patch.object(QueryPlanner, "_narrow", search_exactly)
            with exactly, tenancy.restrict_to(LOCAL.tenant, callers[label]):
                best = [_ask(app, scope, question, arguments.strategy) for question in questions[:COMPARED]]
            return float(np.mean([len(one & got) / TOP_K for one, got in zip(best, found[label], strict=False)]))

        common.table(
            ["caller sees", "passages", "recall of ten", "p50 ms", "p95 ms"],
            ([label, len(seen[label]), measure_recall(label), *common.percentiles(times[label])] for label in ways),
        )


def _ask(app: Application, scope: Scope, question: str, strategy: Strategy) -> set[int]:
    query = Query(
        text=question, scope=scope, top_k=TOP_K, memory="off", strategy=strategy, collapse_duplicates=False
    )
    return {int(hit.passage_id) for hit in app.answers.question.answer(query).passages}


def search_exactly(_: QueryPlanner, plan: QueryPlan) -> QueryPlan:
    """The plan without use of the vector index."""
    return replace(plan, focus=replace(plan.focus, limits=replace(plan.focus.limits, exact=True)))


def _measure_recall(
    held: NDArray[np.float32], seen: NDArray[np.int64], asked: NDArray[np.float32], found: Sequence[set[int]]
) -> float:
    """The share of the ten best of the seen passages that was found."""
    best = seen[np.argsort(-(asked @ held[seen].T), axis=1)[:, :TOP_K]]
    return float(np.mean([len(set(one.tolist()) & got) / TOP_K for one, got in zip(best, found, strict=True)]))


if __name__ == "__main__":
    main()
