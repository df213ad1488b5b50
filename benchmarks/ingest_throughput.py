"""What does ingest cost beside the embedding it cannot do without?

    python benchmarks/ingest_throughput.py DATASET_DIR [--passages N] [--rounds N]

The corpus of DATASET_DIR (a BEIR folder) is ingested into a new collection, and the encoder alone embeds its
sentences and passages, in calls as large as those of this ingest: ratio = encoder alone / ingest, 1 would be free.
Ingest lasts until the job has succeeded, when all passages can be found; embedding names comes after that, and is
reported beside it. Seconds are those of the clock, and of processors: this process and the server's backends, which
is what counts on a machine that others use. Rounds alternate with who comes first. DATABASE_URL, or the embedded
Postgres of ENGRAM_DATA_DIR on this machine, is used; the collections are removed again.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import common
from engram.composition.container import Application
from engram.composition.parts import corpus_services
from engram.composition.parts.job_services import LEASE_SECONDS
from engram.providers.embedder import Embedder
from engram.services.corpus.entity_embedding import EntityEmbedder
from engram.services.corpus.graph_builder import GraphBuilder
from engram.services.encoders.encoder import Encoder
from engram.services.jobs.job_kinds import INGEST
from engram.services.jobs.job_runner import Runner
from query_cost import Backends

NAMED_ENTITIES = """
    SELECT surface FROM entity WHERE collection_id = %(collection)s
    UNION SELECT text FROM time_expression WHERE collection_id = %(collection)s
"""


class Recorder(common.WrappedEncoder):
    """An encoder that remembers what it was asked."""

    def __init__(self, embedder: Embedder) -> None:
        super().__init__(embedder)
        self.calls: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed and remember."""
        self.calls.append(list(texts))
        vectors: NDArray[np.float32] = self.embedder.embed(texts)
        return vectors


class Clock:
    """Seconds of the clock and of processors since it was made."""

    def __init__(self, backends: Backends) -> None:
        self._backends = backends
        self._began = self._now()

    def _now(self) -> NDArray[np.float64]:
        return np.array([time.perf_counter(), time.process_time() + self._backends.milliseconds() / 1000])

    def lap(self) -> NDArray[np.float64]:
        """Both, (2,), since it was made or last asked."""
        began, self._began = self._began, self._now()
        return self._began - began


def ingest(
    app: Application, bodies: Sequence[dict[str, Any]], backends: Backends
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[list[str]], int]:
    """Ingest until all can be found, and what follows, each (2,) as of ``Clock``; the encoder's calls for sentences
    and passages; and the number of names and times."""
    recorder = Recorder(app.models.embedder)
    index = GraphBuilder(
        app.database,
        Encoder(recorder),
        app.models.language,
        app.corpus.kinds,
        batch_size=corpus_services.BATCH_SIZE,
        replay_sentences=app.corpus.replay_sentences,
        observers=app.hooks.passage_observers,
    )
    runner = Runner(app.database, {INGEST: index}, lease_seconds=LEASE_SECONDS)
    with common.scratch_collection(app) as collection:
        job = app.jobs.jobs.job(app.auth.access.scope(collection), common.stage(app, collection, bodies))
        clock = Clock(backends)
        if not runner.run_ready(collection_id=job.collection_id):
            raise SystemExit("Another worker took the job: stop it, or give the benchmark a database of its own.")
        searchable = clock.lap()
        status = app.jobs.jobs.job(app.auth.access.scope(collection), job.id).status
        if status != "succeeded":
            raise SystemExit(f"The ingest ended as {status}.")
        calls = recorder.calls
        clock.lap()
        EntityEmbedder(app.database, app.models.encoder).run(collection_id=job.collection_id)
        after = clock.lap()
        with app.database.read() as reader:
            named = {row.surface for row in reader.rows(NAMED_ENTITIES, {"collection": job.collection_id})}
        return searchable, after, [[text for text in texts if text not in named] for texts in calls], len(named)


def time_encoder(embedder: Embedder, calls: Sequence[list[str]], backends: Backends) -> NDArray[np.float64]:
    """What the encoder takes for these calls, as of ``Clock``."""
    clock = Clock(backends)
    for texts in calls:
        embedder.embed(texts)
    return clock.lap()


def main() -> None:
    parser = argparse.ArgumentParser(description="Ingest beside the encoder alone on sentences and passages.")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--passages", type=int, help="Only the first N; default: the whole corpus.")
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    bodies = common.passages(arguments.dataset, arguments.passages)

    with common.application() as (app, _):
        backends = Backends(app)
        ingest(app, bodies[:100], backends)  # caches and prepared statements
        rows: list[list[object]] = []
        calls: list[list[str]] = []
        for number in range(1, arguments.rounds + 1):
            floor_first = number % 2 == 0
            floor = time_encoder(app.models.embedder, calls, backends) if floor_first else np.zeros(2)
            searchable, after, calls, names = ingest(app, bodies, backends)
            floor = floor if floor_first else time_encoder(app.models.embedder, calls, backends)
            texts = sum(map(len, calls))
            rows.append([number, len(bodies), texts, names, *floor, *searchable, *after, *(floor / searchable)])
        common.table(
            "round, passages, texts, names, encoder s, cpu, searchable s, cpu, names s, cpu, ratio, ratio of cpu",
            rows,
        )


if __name__ == "__main__":
    main()
