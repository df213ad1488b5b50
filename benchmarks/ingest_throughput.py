"""What does ingest cost beside the embedding it cannot do without?

    python benchmarks/ingest_throughput.py DATASET_DIR [--passages N] [--rounds N] [--facts]

The corpus of DATASET_DIR (a BEIR folder) is ingested into a new collection, and the encoder alone embeds exactly
the texts that this ingest gave it, in the same calls: ratio = encoder alone / ingest, 1 would be free. Rounds
alternate with who comes first. DATABASE_URL, or the embedded Postgres of ENGRAM_DATA_DIR, is used; the collections
are removed again. Staging (taking in and validating the lines) is reported on its own: it ends before the
answer to `POST /passages`, ingest begins after it. With ``--facts`` every round ingests twice, with the facts that
passages say and without, in turns: processor time, here and in Postgres, says what they cost on a machine that
does other things as well.
"""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

import common
from app.composition import Application
from app.providers.embedder import Embedder
from app.services.access.encoder import Encoder
from app.services.corpus.index import IndexService
from app.services.jobs.kinds import INGEST
from app.services.jobs.runner import Runner


class Recorder:
    """An encoder that remembers what it was asked."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.calls: list[list[str]] = []

    @property
    def model(self) -> str:
        """The encoder's own."""
        return self._embedder.model

    @property
    def fingerprint(self) -> str:
        """The encoder's own."""
        return self._embedder.fingerprint

    @property
    def dimension(self) -> int:
        """The encoder's own."""
        return self._embedder.dimension

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embed and remember."""
        self.calls.append(list(texts))
        return self._embedder.embed(texts)


def ingest(
    app: Application, bodies: Sequence[dict[str, Any]], *, facts: bool = False
) -> tuple[float, float, list[list[str]], int]:
    """Seconds of staging and of ingest, the encoder's calls, and the number of sentences."""
    recorder = Recorder(app.embedder)
    index = IndexService(
        app.database,
        Encoder(recorder),
        app.language,
        batch_size=app.settings.ingest_batch_size,
        facts=app.noise if facts else None,
        align=app.align if facts else None,
    )
    runner = Runner(app.database, {INGEST: index}, lease_seconds=app.settings.job_lease_seconds)
    with common.scratch_collection(app) as collection:
        began = time.perf_counter()
        job_id = common.stage(app, collection, bodies)  # makes the collection
        job = app.jobs.job(app.access.scope(collection), job_id)
        staged = time.perf_counter()
        if not runner.run_ready(collection_id=job.collection_id):
            raise SystemExit("Another worker took the job: stop it, or give the benchmark a database of its own.")
        done = time.perf_counter()
        status = app.jobs.job(app.access.scope(collection), job.id).status
        if status != "succeeded":
            raise SystemExit(f"The ingest ended as {status}.")
        return staged - began, done - staged, recorder.calls, app.access.scope(collection).collection.sentence_count


def processor(app: Application) -> tuple[float, float]:
    """Seconds of processor time so far, here and in all of Postgres."""
    with app.database.read() as reader:
        postmaster = psutil.Process(reader.scalar("SELECT pg_backend_pid()")).parent()
    there = 0.0
    for process in [] if postmaster is None else [postmaster, *postmaster.children()]:
        times = process.cpu_times()
        there += times.user + times.system + times.children_user + times.children_system
    return time.process_time(), there


def with_facts(app: Application, bodies: Sequence[dict[str, Any]], rounds: int) -> None:
    """What facts add to an ingest."""
    rows: list[list[object]] = []
    for number in range(1, rounds + 1):
        for facts in (False, True) if number % 2 else (True, False):
            here, there = processor(app)
            _, seconds, calls, sentences = ingest(app, bodies, facts=facts)
            then = processor(app)
            texts = sum(map(len, calls))
            rows.append([number, facts, len(bodies), sentences, texts, seconds, then[0] - here, then[1] - there])
    common.table(
        ["round", "facts", "passages", "sentences", "texts", "ingest s", "processor s", "in Postgres s"], rows
    )


def alone(embedder: Embedder, calls: Sequence[list[str]]) -> float:
    """Seconds that the encoder takes for these calls."""
    began = time.perf_counter()
    for texts in calls:
        embedder.embed(texts)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description="Ingest as a ratio to the encoder alone on the same texts.")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--passages", type=int, help="Only the first N; default: the whole corpus.")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--facts", action="store_true", help="Compare ingest with and without facts instead.")
    arguments = parser.parse_args()
    bodies = common.passages(arguments.dataset, arguments.passages)

    with common.application() as (app, _):
        if arguments.facts:
            with_facts(app, bodies, arguments.rounds)
            return
        rows: list[list[object]] = []
        calls: list[list[str]] = []
        for number in range(1, arguments.rounds + 1):
            floor_first = number % 2 == 0
            floor = alone(app.embedder, calls) if floor_first else 0.0
            staging, seconds, calls, sentences = ingest(app, bodies)
            floor = floor if floor_first else alone(app.embedder, calls)
            texts = sum(map(len, calls))
            rows.append(
                [
                    number,
                    len(bodies),
                    sentences,
                    texts,
                    staging,
                    seconds,
                    floor,
                    len(bodies) / seconds,
                    floor / seconds,
                ]
            )
        header = [
            "round",
            "passages",
            "sentences",
            "texts",
            "staging s",
            "ingest s",
            "encoder s",
            "passages/s",
            "ratio",
        ]
        common.table(header, rows)


if __name__ == "__main__":
    main()
