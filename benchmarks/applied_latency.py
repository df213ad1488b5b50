"""How long is it from a verdict's arrival until what it taught can be read, while others ask and judge?

    python benchmarks/applied_latency.py DATASET_DIR [--collection NAME] [--clients N] [--verdicts RATE]

DATASET_DIR is a BEIR folder whose corpus was ingested (`engram ingest -c NAME corpus.jsonl.gz`). One API process
and one worker; ``--clients`` ask one question after the other, and ``RATE`` times a second a verdict on one of the
answers is posted, without waiting for it. A verdict is applied once another connection sees it so: the log is
looked at every 20 ms, and its own clock tells when the verdict came. `applied_at` would not do, which is when the
transaction began. Verdicts that were refused (429, 503) are counted, and not sent again.
"""

import argparse
import itertools
import threading
import time
import uuid
from collections import Counter
from pathlib import Path

import httpx
import numpy as np

import common
from engram.composition.container import Application
from engram.context import tenancy
from query_latency import api, run_command

LOOK_SECONDS = 0.02
LAST_SECONDS = 60.0
"""For which the last verdicts are waited for."""
APPLIED_EVENTS = """
    SELECT id, extract(epoch FROM clock_timestamp() - received_at)::float8 AS seconds FROM feedback_event
    WHERE collection_id = %(collection)s AND id > %(after)s AND status = 'applied'
"""
WAITING_COUNT = "SELECT count(*) FROM feedback_event WHERE collection_id = %(collection)s AND status = 'pending'"
LAST_EVENT = "SELECT coalesce(max(id), 0) FROM feedback_event WHERE collection_id = %(collection)s"


class Load:
    """Clients that ask, and one that judges what they were answered; ``answers`` are their latest."""

    def __init__(self, base: str, collection: str, questions: list[str], until: float) -> None:
        self._base = base
        self._collection = collection
        self._asked = questions
        self._until = until
        self._lock = threading.Lock()
        self.answers: list[tuple[str, list[int]]] = []
        self.milliseconds: list[float] = []
        self.posted: Counter[int] = Counter()

    def ask(self, first: int) -> None:
        """One question after the other."""
        with httpx.Client(base_url=self._base, timeout=60.0, trust_env=False) as client:
            for text in itertools.cycle(self._asked[first:] + self._asked[:first]):
                if time.monotonic() >= self._until:
                    return
                began = time.perf_counter()
                answer = client.post("/query", json={"query": text, "collection": self._collection, "top_k": 10})
                if answer.status_code != httpx.codes.OK:
                    time.sleep(float(answer.headers.get("retry-after", 0.1)))
                    continue
                body = answer.json()
                sentences = [row["sentence_id"] for hit in body["passages"] for row in hit["sentences"]]
                with self._lock:
                    self.milliseconds.append((time.perf_counter() - began) * 1000.0)
                    self.answers.append((body["query_id"], sentences[:2]))

    def judge(self, rate: float) -> None:
        """So many verdicts a second, each on another answer."""
        began = time.monotonic()
        with httpx.Client(base_url=self._base, timeout=60.0, trust_env=False) as client:
            for number in itertools.count():
                time.sleep(max(0.0, began + number / rate - time.monotonic()))
                if time.monotonic() >= self._until:
                    return
                with self._lock:
                    answer = self.answers.pop() if self.answers else None
                if answer is not None:
                    self._post(client, *answer)

    def ready(self, app: Application, collection_id: int) -> None:
        """Post a verdict and wait until it is applied: the worker is ready."""
        with httpx.Client(base_url=self._base, timeout=60.0, trust_env=False) as client:
            self._post(client, *self.answers[0])
        waiting = 1
        while waiting:
            time.sleep(LOOK_SECONDS)
            with app.database.read() as reader:
                waiting = reader.scalar(WAITING_COUNT, {"collection": collection_id})

    def _post(self, client: httpx.Client, query_id: str, sentences: list[int]) -> None:
        said = {"query_id": query_id, "collection": self._collection, "supporting": sentences}
        answer = client.post("/feedback", json=said, headers={"Idempotency-Key": str(uuid.uuid4())})
        self.posted[answer.status_code] += 1


def watch(app: Application, collection_id: int, after: int, over: threading.Event) -> dict[int, float]:
    """Verdict -> seconds from its arrival until it was seen to be applied; ends once none waits any more."""
    seen: dict[int, float] = {}
    last = None
    while True:
        with app.database.read() as reader:
            for row in reader.rows(APPLIED_EVENTS, {"collection": collection_id, "after": after}):
                seen.setdefault(row.id, row.seconds)
            waiting = reader.scalar(WAITING_COUNT, {"collection": collection_id}) if over.is_set() else None
        if over.is_set():
            last = last or time.monotonic()
            if not waiting or time.monotonic() - last > LAST_SECONDS:
                return seen
        time.sleep(LOOK_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(description="From a verdict's arrival to its application, under load.")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--collection", help="Default: the folder's name.")
    parser.add_argument("--clients", type=int, nargs="+", default=[0, 4, 16], help="That ask at once.")
    parser.add_argument("--verdicts", type=float, default=5.0, help="A second.")
    parser.add_argument("--seconds", type=float, default=30.0)
    arguments = parser.parse_args()
    collection = arguments.collection or arguments.dataset.resolve().name
    asked = common.questions(arguments.dataset)

    rows: list[list[object]] = []
    with common.application() as (app, addresses), api(addresses) as (client, _), run_command(addresses, "worker"):
        collection_id = app.auth.access.scope(collection).collection.id
        first = Load(str(client.base_url), collection, asked, time.monotonic() + arguments.seconds / 2)
        first.ask(0)  # until the API is warm, and there are answers to judge where nobody asks
        first.ready(app, collection_id)
        for clients in arguments.clients:
            load = Load(str(client.base_url), collection, asked, time.monotonic() + arguments.seconds)
            load.answers = list(first.answers)
            with app.database.read() as reader:
                after = reader.scalar(LAST_EVENT, {"collection": collection_id})
            over, seen = threading.Event(), dict[int, float]()

            def look(over: threading.Event = over, seen: dict[int, float] = seen, after: int = after) -> None:
                seen.update(watch(app, collection_id, after, over))

            watching = threading.Thread(target=tenancy.carry(look))
            threads = [threading.Thread(target=load.ask, args=(37 * n % len(asked),)) for n in range(clients)]
            threads.append(threading.Thread(target=load.judge, args=(arguments.verdicts,)))
            watching.start()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            over.set()
            watching.join()
            accepted = sum(count for status, count in load.posted.items() if status < 300)
            refused = sum(count for status, count in load.posted.items() if status in {429, 503})
            other = load.posted.total() - accepted - refused
            took = np.percentile(list(seen.values()), [50, 95, 100]).tolist()
            half = float(np.median(load.milliseconds)) if load.milliseconds else 0.0
            asked_rate = len(load.milliseconds) / arguments.seconds
            rows.append([clients, asked_rate, half, accepted, refused, other, accepted - len(seen), *took])
    common.table(
        "clients, questions/s, question p50 ms, verdicts accepted, refused, failed, not applied, applied p50 s, "
        "p95 s, longest s",
        rows,
    )


if __name__ == "__main__":
    main()
