"""How long does a query take, against the least that any vector search over Postgres must do?

    python benchmarks/query_latency.py DATASET_DIR [--collection NAME] [--questions N] [--no-http]

DATASET_DIR is a BEIR folder whose corpus was ingested (`engram ingest -c NAME corpus.jsonl.gz`); its questions are
asked. DATABASE_URL and REDIS_URL, or the embedded servers of ENGRAM_DATA_DIR, are used as they
are. Every question is asked in every way in turn, in another order each time, so that load on the machine falls on
all alike; read the ratios, not the milliseconds.

The floor is embedding the question and one top-10 search by inner product over the passages' base keys on one
connection with prepared statements: once through the HNSW index (`ORDER BY embedding <#> q LIMIT 10`, sorting
disabled so that the planner has to take it), once exactly (an expression that no index serves). A query also
analyses the question, aligns entities, walks up to three hops, ranks, and writes its episode.
"""

import argparse
import os
import random
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psycopg
from pgvector.psycopg import register_vector

import common
from engram.composition.container import Application, Servers
from engram.composition.servers import HNSW_EF_SEARCH
from engram.storage.half_vectors import halve
from engram.storage.question.nearest_neighbours import build_index_condition, build_index_key, operators

ARMS = [(profile, memory) for profile in ("paper", "default") for memory in ("off", "read")]
TOP_K = 10
START_SECONDS = 60.0

Way = Callable[[str], object]


class Floor:
    """Embedding and one vector search."""

    def __init__(self, app: Application, url: str, collection: str, *, exact: bool) -> None:
        self._embedder = app.models.embedder
        self._collection = app.auth.access.scope(collection).collection.id
        self._connection = psycopg.connect(url.replace("+psycopg", ""), autocommit=True)
        register_vector(self._connection)
        self._connection.execute(f"SET hnsw.ef_search = {HNSW_EF_SEARCH}")
        self._connection.execute("SET hnsw.iterative_scan = relaxed_order")
        dimension = app.models.embedder.dimension
        key = build_index_key("passage", "embedding", dimension)
        if not exact:
            self._connection.execute(
                f"CREATE INDEX IF NOT EXISTS passage_hnsw_{self._collection} ON passage "
                f"USING hnsw ({key} {operators('passage', dimension)}) "
                f"WHERE {build_index_condition(self._collection)}"
            )
        rows = f"collection_id = {self._collection}" if exact else build_index_condition(self._collection)
        sought = halve("%(q)s::vector")
        order = f"(embedding <#> {sought}) + 0" if exact else f"{key} <#> {sought}"
        self._statement = f"SELECT id FROM passage WHERE {rows} ORDER BY {order} LIMIT {TOP_K}"

    def __call__(self, question: str) -> object:
        """The nearest passages."""
        parameters = {"q": self._embedder.embed([question])[0]}
        return self._connection.execute(self._statement, parameters, binary=True).fetchall()

    def plan(self, question: str) -> str:
        """The scan that Postgres chose."""
        parameters = {"q": self._embedder.embed([question])[0]}
        lines = self._connection.execute(f"EXPLAIN {self._statement}", parameters).fetchall()
        return next(str(line[0]).strip() for line in lines if "Scan" in str(line[0])).split("  (")[0]


def measure_interleaved(ways: dict[str, Way], questions: list[str], seed: int) -> dict[str, list[float]]:
    """Milliseconds of each way to ask each question."""
    order = random.Random(seed)
    samples: dict[str, list[float]] = defaultdict(list)
    names = list(ways)
    for question in questions:
        order.shuffle(names)
        for name in names:
            began = time.perf_counter()
            ways[name](question)
            samples[name].append((time.perf_counter() - began) * 1000.0)
    return samples


@contextmanager
def run_command(addresses: Servers, command: str, **env: str) -> Iterator["subprocess.Popen[bytes]"]:
    """A command of `engram` that runs on these servers until the end of the block."""
    own = {"DATABASE_URL": addresses.database_url, "REDIS_URL": addresses.redis_url, "ENGRAM_LOG_LEVEL": "ERROR"}
    process = subprocess.Popen([sys.executable, "-m", "engram.cli", command], env=os.environ | own | env)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@contextmanager
def api(addresses: Servers) -> Iterator[tuple[httpx.Client, int]]:
    """A running `engram serve` on these servers: a client for it, and its process id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (
        run_command(addresses, "serve", ENGRAM_HOST="127.0.0.1", ENGRAM_PORT=str(port)) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30.0, trust_env=False) as client,
    ):
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                client.get("/readyz").raise_for_status()
                break
            except httpx.HTTPError:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise
                time.sleep(0.1)
        yield client, process.pid


def resident_mib(pid: int) -> tuple[float, float]:
    """Resident memory now and at its highest (Linux)."""
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    now, peak = (int(fields[name].split()[0]) / 1024.0 for name in ("VmRSS", "VmHWM"))
    return now, peak


def rows(samples: dict[str, list[float]], floors: tuple[str, str]) -> list[list[object]]:
    """Percentiles, and p50 and p95 over those of the two floors."""
    base = [common.percentiles(samples[floor]) for floor in floors]
    lines: list[list[object]] = []
    for name, values in samples.items():
        half, most = common.percentiles(values)
        ratios = [f"{half / floor[0]:.1f} / {most / floor[1]:.1f}" for floor in base]
        lines.append([name, half, most, *ratios])
    return sorted(lines, key=lambda line: str(line[0]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Query latency as a ratio to embedding and one vector search.")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--collection", help="Default: the folder's name.")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    collection = arguments.collection or arguments.dataset.resolve().name
    asked = common.questions(arguments.dataset, arguments.questions)

    with common.application() as (app, addresses):
        size = app.auth.access.scope(collection).collection
        exact = Floor(app, addresses.database_url, collection, exact=True)
        hnsw = Floor(app, addresses.database_url, collection, exact=False)
        print(
            f"{collection}: {size.passage_count} passages, {size.sentence_count} sentences; {len(asked)} questions"
        )
        print(f"floor exact: {exact.plan(asked[0])}; floor hnsw: {hnsw.plan(asked[0])}")
        floors = ("floor: exact", "floor: hnsw")
        ways: dict[str, Way] = dict(zip(floors, (exact, hnsw), strict=True))
        for profile, memory in ARMS:
            ways[f"{profile}, memory {memory}"] = _service(app, collection, profile, memory)
        measure_interleaved(ways, asked[:10], arguments.seed)  # caches and prepared statements
        header = ["in process", "p50 ms", "p95 ms", "p50 / p95 over exact", "p50 / p95 over hnsw"]
        common.table(header, rows(measure_interleaved(ways, asked, arguments.seed), floors))
        with api(addresses) as (client, pid):
            ways = {floors[0]: exact, floors[1]: hnsw}
            for profile, memory in ARMS:
                ways[f"{profile}, memory {memory}"] = _http(client, collection, profile, memory)
            measure_interleaved(ways, asked[:10], arguments.seed)
            header[0] = "over HTTP"
            print()
            common.table(header, rows(measure_interleaved(ways, asked, arguments.seed), floors))
            now, peak = resident_mib(pid)
            print(f"API process: {now:.0f} MiB resident, {peak:.0f} MiB at its highest")


def _service(app: Application, collection: str, profile: str, memory: str) -> Way:
    return lambda question: common.ask(app, collection, question, top_k=TOP_K, memory=memory, profile=profile)


def _http(client: httpx.Client, collection: str, profile: str, memory: str) -> Way:
    def ask(question: str) -> object:
        arm = {"memory": memory, "profile": profile}
        body = {"query": question, "collection": collection, "top_k": TOP_K, "arm": arm}
        return client.post("/query", json=body).raise_for_status().json()

    return ask


if __name__ == "__main__":
    main()
