"""What do evolution and re-ingests do to the HNSW index of the passages, and does maintenance make it good?

    python benchmarks/index_health.py DATASET_DIR [--passages N] [--questions N] [--rounds N] [--vectors FILE]

DATASET_DIR is a BEIR folder. Its passages and questions are embedded, once: --vectors names a file that keeps the
vectors for the next run. The passages are written to a collection made for the purpose by the statement that ingest
writes them with (`storage/corpus/passages.py`), in batches as large; sentences, entities and terms are left out,
since the index knows nothing of them.

First, half of the passages get evolved keys, drawn and written anew each round: their base keys turned by the
vector of another passage, at full strength. These are taken away again. Then, round after round, half of the
passages, drawn anew, are written again by ingest's statement. Their vectors stand in for those of a slightly
changed text: what they were plus 0.3 times the vector of another passage, at unit length: a cosine of 0.96 with
what they were, where one sentence of another passage added to a text of scifact makes it 0.95.

After each round every question is searched for through the index, as the service does for a collection too large to
be searched exactly, and exactly; recall@10 is the share of the exact ten that the
index finds. Dead entries are those of the whole index, other collections included: use a database that holds
nothing else, as the embedded one of an empty ENGRAM_DATA_DIR. No worker may run beside it.
"""

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import common
from engram.composition.container import Application
from engram.core.passage_keys.evolution import compose
from engram.services.key_search.dense_search import EXACT
from engram.services.maintenance.index_maintenance import IndexHealth, IndexMaintenanceService, Thresholds
from engram.storage.corpus import collections, passages
from engram.storage.corpus.passages import PassageRow
from engram.storage.database import Reader
from engram.storage.passage_keys import evolved_keys
from engram.storage.passage_keys.evolved_keys import EvolvedKey
from engram.storage.retrieval import passages_by_key
from engram.storage.retrieval.query_focus import Focus, GraphLimits

TOP_K = 10
MIX = 0.3
NEVER = Thresholds(dead_share=1.0, dead_rows=2**62)
HEADER = ("state", "dead", "share", "index MiB", "recall@10", "short of 10", "search p50 ms", "p95 ms", "seconds")

Matrix = NDArray[np.float32]


class Searches:
    """The data set's questions, embedded once and searched for in one collection."""

    def __init__(self, app: Application, collection: str, vectors: Matrix) -> None:
        self._app = app
        self._collection = collection
        self._vectors = vectors
        settings = app.settings
        self._graph = GraphLimits(settings.hub_limit, settings.candidate_limit)

    def measure(self, *, evolved: bool = False) -> tuple[float, int, float, float]:
        """Recall@10, questions with fewer than 10 answers, and p50 and p95 of a search in ms, by either key."""
        found, short, took = [], 0, []
        with self._app.database.read() as reader:
            use_the_index(reader)
            target = collections.find(reader, self._collection)
            for vector in self._vectors:
                focus = Focus(target, vector, limits=self._graph, use_memory=evolved)
                exact = set(passages_by_key.find_nearest_passages(reader, replace(focus, limits=EXACT), TOP_K))
                began = time.perf_counter()
                near = set(passages_by_key.find_nearest_passages(reader, focus, TOP_K))
                took.append((time.perf_counter() - began) * 1000.0)
                found.append(len(near & exact) / len(exact))
                short += len(near) < len(exact)
        return float(np.mean(found)), short, *common.percentiles(took)


def use_the_index(reader: Reader) -> None:
    """Keep the planner, on this connection, from sorting a small collection instead."""
    reader.scalar("SELECT set_config('enable_sort', 'off', false)")


def plan(reader: Reader, collection_id: int, vector: Matrix) -> str:
    """The scan that Postgres chooses for a search through the index."""
    use_the_index(reader)
    lines = reader.rows(
        f"EXPLAIN SELECT id FROM passage WHERE collection_id = %(c)s ORDER BY embedding <#> %(q)s LIMIT {TOP_K}",
        {"c": collection_id, "q": vector},
    )
    return next(str(line[0]).strip() for line in lines if "Scan" in str(line[0])).split("  (")[0]


def load_vectors(
    app: Application, texts: Sequence[str], questions: Sequence[str], cache_file: Path | None
) -> tuple[Matrix, Matrix]:
    """Vectors of the passages (n, d) and of the questions (q, d), from the file ``cache_file`` if that has them."""
    if cache_file is not None and cache_file.exists():
        found = np.load(cache_file)
        if len(found["passages"]) < len(texts) or len(found["questions"]) < len(questions):
            raise SystemExit(f"{cache_file} holds fewer vectors than were asked for")
        kept_vectors: tuple[Matrix, Matrix] = found["passages"][: len(texts)], found["questions"][: len(questions)]
        return kept_vectors
    vectors = [np.asarray(app.models.embedder.embed(list(part)), dtype=np.float32) for part in (texts, questions)]
    if cache_file is not None:
        np.savez(cache_file, passages=vectors[0], questions=vectors[1])
    return vectors[0], vectors[1]


def write(
    app: Application, collection_id: int, bodies: Sequence[Mapping[str, Any]], vectors: Matrix, turn: int
) -> None:
    """Insert passages or write them again, a batch per transaction."""
    version = turn.to_bytes(4)
    for batch in common.chunks(list(zip(bodies, vectors, strict=True)), app.settings.ingest_batch_size):
        with app.database.write() as writer:
            passages.upsert(
                writer,
                collection_id,
                [
                    PassageRow(body["id"], body["title"], body["text"], "en", {}, version, vector)
                    for body, vector in batch
                ],
            )


def perturb(vectors: Matrix, draw: np.random.Generator) -> Matrix:
    """Vectors of slightly changed texts: mixed with those of other passages, at unit length."""
    mixed: Matrix = vectors + MIX * vectors[draw.permutation(len(vectors))]
    mixed /= np.linalg.norm(mixed, axis=1, keepdims=True)
    return mixed


def evolve(app: Application, collection_id: int, ids: Sequence[int], vectors: Matrix, generation: int) -> None:
    """Give these passages keys turned by the vectors, or, with generation 0, take their evolved keys away."""
    rules = app.models.key_learning.rules
    for batch in common.chunks(list(zip(ids, vectors, strict=True)), 500):
        with app.database.write() as writer:
            evolved_keys.lock(writer, collection_id)
            batch_ids = [passage for passage, _ in batch]
            bases = evolved_keys.lock_bases(writer, collection_id, batch_ids) if generation else {}
            turned = [
                EvolvedKey(
                    passage,
                    generation,
                    compose(bases[passage], vector[None], np.ones(1), rules.strength),
                    [],
                    [],
                    {},
                )
                for passage, vector in batch
                if passage in bases
            ]
            evolved_keys.replace_keys(writer, collection_id, batch_ids, turned, {})
            writer.execute(
                "UPDATE collection SET key_generation = %(number)s WHERE id = %(id)s",
                {"number": generation, "id": collection_id},
            )


def health(app: Application, collection_id: int, *, force: bool = False) -> IndexHealth:
    """The index of the collection's passages; built anew with ``force``, else only looked at."""
    memory = app.settings.maintenance_memory_mb
    maintain = IndexMaintenanceService(app.database, NEVER, memory_mb=memory, exact_search_limit=0)
    reports = maintain.run(force=force)
    if reports is None:
        raise SystemExit("another process maintains the indexes")
    return next(report for report in reports if report.index == f"passage_hnsw_{collection_id}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Recall of the HNSW index fresh, after re-ingests, and healed.")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--passages", type=int, help="Default: all.")
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--vectors", type=Path, help="File (.npz) that keeps the vectors for the next run.")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    bodies = common.passages(arguments.dataset, arguments.passages)
    asked = common.questions(arguments.dataset, arguments.questions)
    draw = np.random.default_rng(arguments.seed)
    lines: list[list[object]] = []

    with common.application() as (app, _), common.scratch_collection(app) as name:
        texts = [f"{body['title']}. {body['text']}" if body["title"] else body["text"] for body in bodies]
        vectors, questions = load_vectors(app, texts, asked, arguments.vectors)
        searches = Searches(app, name, questions)
        with app.database.write() as writer:
            target = collections.open_for_writing(writer, name, app.models.encoder.id).collection.id
            collections.add_counts(
                writer, target, passages=len(bodies), sentences=0, entities=0, lexical_length=0.0
            )

        def line(state: str, seconds: float, *, evolved: bool = False) -> None:
            found = health(app, target)
            recall, short, half, most = searches.measure(evolved=evolved)
            size = found.bytes_after / 2**20
            lines.append(
                [
                    state,
                    found.dead,
                    f"{found.share:.2f}",
                    f"{size:.1f}",
                    f"{recall:.4f}",
                    short,
                    half,
                    most,
                    seconds,
                ]
            )
            print(f"{state}: recall@{TOP_K} {recall:.4f}", flush=True)

        health(app, target, force=True)  # an earlier run may have left dead entries
        began = time.perf_counter()
        write(app, target, bodies, vectors, 0)
        line("fresh", time.perf_counter() - began)
        with app.database.read() as reader:
            found = passages.versions(reader, target, [body["id"] for body in bodies])
        ids = [found[body["id"]][0] for body in bodies]
        began = time.perf_counter()
        for turn in range(1, arguments.rounds + 1):
            half = np.sort(draw.permutation(len(bodies))[: len(bodies) // 2])
            evolve(app, target, [ids[n] for n in half], vectors[draw.permutation(len(bodies))[: len(half)]], turn)
        line(f"{arguments.rounds} x half evolved", time.perf_counter() - began, evolved=True)
        evolve(app, target, ids, vectors, 0)
        for turn in range(1, arguments.rounds + 1):
            half = np.sort(draw.permutation(len(bodies))[: len(bodies) // 2])
            vectors[half] = perturb(vectors[half], draw)
            began = time.perf_counter()
            write(app, target, [bodies[n] for n in half], vectors[half], turn)
            line(f"{turn} x half re-ingested", time.perf_counter() - began)
        began = time.perf_counter()
        health(app, target, force=True)
        line("healed", time.perf_counter() - began)
        with app.database.read() as reader:
            scan = plan(reader, target, questions[0])
        print(f"\n{len(bodies)} passages, {len(asked)} questions; {scan}\n")
        common.table(HEADER, lines)


if __name__ == "__main__":
    main()
