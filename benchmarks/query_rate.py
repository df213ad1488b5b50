"""How many questions a second does one API process answer, and how long do they take, with many clients at once?

    python benchmarks/query_rate.py DATASET_DIR [--collection NAME] [--clients 1 16 64] [--seconds S]

DATASET_DIR is a BEIR folder whose corpus was ingested (`engram ingest -c NAME corpus.jsonl.gz`). Each client asks
one question after the other, each another one; a refused one (429, 503) is counted apart, and waits as long as it
is told to. Another client asks `GET /healthz` all the while. Processor time a question, of the API, of Postgres and
of the clients, hardly hangs on who else uses the machine; questions a second do. Clients share the cores with what
they ask, so they do as little as they can: bodies are made before, and answers are read but not parsed.
"""

import argparse
import itertools
import json
import os
import threading
import time
from collections import Counter
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

import common
from query_cost import Backends
from query_latency import api


def api_milliseconds(pid: int) -> float:
    """Processor time of all threads of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * 1000.0 / os.sysconf("SC_CLK_TCK")


def read_processor_milliseconds(pid: int, backends: Backends) -> tuple[float, float, float]:
    """Processor time so far of the API's process, of Postgres and of this one, in milliseconds."""
    return api_milliseconds(pid), backends.milliseconds(), time.process_time() * 1000.0


def connect(base: str) -> HTTPConnection:
    """A connection of a client's own."""
    address = urlsplit(base)
    return HTTPConnection(str(address.hostname), address.port, timeout=60.0)


def ask(base: str, bodies: "itertools.cycle[bytes]", until: float) -> tuple[list[float], Counter[int]]:
    """What one client sees: milliseconds of each answer, and how often each status came."""
    took: list[float] = []
    seen: Counter[int] = Counter()
    client = connect(base)
    while time.monotonic() < until:
        began = time.perf_counter()
        client.request("POST", "/query", next(bodies), {"content-type": "application/json"})
        answer = client.getresponse()
        answer.read()
        seen[answer.status] += 1
        if answer.status == HTTPStatus.OK:
            took.append((time.perf_counter() - began) * 1000.0)
        else:
            time.sleep(min(float(answer.headers.get("retry-after", 0)), max(until - time.monotonic(), 0)))
    client.close()
    return took, seen


def live(base: str, until: float) -> list[float]:
    """Milliseconds of each answer to whether the process lives, asked ten times a second."""
    took: list[float] = []
    client = connect(base)
    while time.monotonic() < until:
        began = time.perf_counter()
        client.request("GET", "/healthz")
        answer = client.getresponse()
        answer.read()
        if answer.status != HTTPStatus.OK:
            raise SystemExit(f"GET /healthz was answered {answer.status}")
        took.append((time.perf_counter() - began) * 1000.0)
        time.sleep(0.1)
    client.close()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description="Questions a second with many clients at once.")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--collection", help="Default: the folder's name.")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--seconds", type=float, default=15.0)
    arguments = parser.parse_args()
    collection = arguments.collection or arguments.dataset.resolve().name
    asked = [
        json.dumps({"query": question, "collection": collection, "top_k": 10}).encode()
        for question in common.questions(arguments.dataset)
    ]

    rows: list[list[object]] = []
    with common.application() as (app, addresses), api(addresses) as (client, pid):
        backends = Backends(app)
        base = str(client.base_url)
        ask(base, itertools.cycle(asked), time.monotonic() + 3.0)
        for clients in arguments.clients:
            took: list[float] = []
            seen: Counter[int] = Counter()

            def run(first: int, took: list[float] = took, seen: Counter[int] = seen) -> None:
                until = time.monotonic() + arguments.seconds
                own, statuses = ask(base, itertools.cycle(asked[first:] + asked[:first]), until)
                took.extend(own)
                seen.update(statuses)

            beats: list[float] = []

            def beat(beats: list[float] = beats) -> None:
                beats.extend(live(base, time.monotonic() + arguments.seconds))

            threads = [threading.Thread(target=run, args=(37 * n % len(asked),)) for n in range(clients)]
            threads.append(threading.Thread(target=beat))
            before, began = read_processor_milliseconds(pid, backends), time.monotonic()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            wall, after = time.monotonic() - began, read_processor_milliseconds(pid, backends)
            half, most, nearly_all = np.percentile(took, [50, 95, 99]).tolist()
            cost = [(now - was) / max(len(took), 1) for was, now in zip(before, after, strict=True)]
            refused = sum(count for status, count in seen.items() if status != HTTPStatus.OK)
            row: list[object] = [clients, len(took) / wall, half, most, nearly_all, nearly_all / half]
            rows.append([*row, *cost, refused, *common.percentiles(beats)])
    common.table(
        "clients, questions/s, p50 ms, p95 ms, p99 ms, p99/p50, API ms a question, Postgres ms a question, "
        "clients ms a question, refused, healthz p50 ms, healthz p95 ms",
        rows,
    )


if __name__ == "__main__":
    main()
