"""Does the service lose or double a verdict while its parts are killed, and does it stay quick?

    python benchmarks/soak.py [-n POSTS] [-k SECONDS] [-d DATASET_DIR] [-p PASSAGES] [-q QUESTIONS] [-c CLIENTS]
                              [-r POSTS_PER_SECOND] [-e SHARE] [-s SEED] [--keep DIR]

Starts a service of its own in a temporary folder (embedded Postgres and Redis, the API, two workers), fills it with
the sample corpus in several varied copies or the first passages of a BEIR folder, asks its questions, and posts
verdicts on the answers from several clients. A tenth of the posts repeat an earlier one with its Idempotency-Key,
at once or later. One more client asks questions all the while. Meanwhile, at random but the same for a seed, a
worker, the API, Redis, a Postgres backend or the postmaster is killed (SIGKILL) and started again.

Then it waits until no verdict is pending and checks: what was accepted is what was posted, each verdict applied
exactly once, by events, audit rows and the update counts of all states; no deadlock in Postgres' log; no verdict
parked; `engram verify` clean. Exit code 1 if one of these fails.

Rates are over the time in which there was something to post; a fault lasts from the kill until all parts answer
again. Latency is of the whole request, as the client sees it; `quiet` is with nothing else going on.
"""

import argparse
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import structlog

import common
from engram.composition.container import Application
from engram.context import tenancy
from engram.wings.local import sample
from running import POLL_SECONDS, Fault, Service, disturb
from soaked import COLLECTION, Body, Rows, check, drain, list_updates
from usage import Usage

QUIET_SECONDS = 15.0
JUDGES = 40
REPEATED_SHARE = 0.1


@dataclass
class Asker:
    """Asks questions one after the other and keeps how long each took, and what failed."""

    url: str
    questions: Sequence[str]
    seconds: list[tuple[float, float]] = field(default_factory=list)
    failures: int = 0

    def run(self, stopped: threading.Event, seed: int) -> None:
        """Ask until stopped."""
        draw = random.Random(seed)
        with httpx.Client(base_url=self.url, timeout=30.0, trust_env=False) as client:
            while not stopped.is_set():
                began = time.time()
                body = {"collection": COLLECTION, "query": draw.choice(self.questions)}
                try:
                    answered = client.post("/query", json=body).status_code == httpx.codes.OK
                except httpx.TransportError:
                    answered = False
                if answered:
                    self.seconds.append((began, time.time() - began))
                else:
                    self.failures += 1
                    time.sleep(POLL_SECONDS)


def corpus(folder: Path | None, count: int) -> tuple[list[Body], list[str]]:
    """Passages and questions."""
    if folder is not None:
        return common.passages(folder, count), common.questions(folder)
    rows = [json.loads(line) for line in sample.corpus().splitlines() if line.strip()]
    passages = []
    for number in range(count):
        volume, row = number // len(rows) + 1, rows[number % len(rows)]
        text = row["text"] if volume == 1 else f"{row['text']} Volume {volume} of the encyclopedia repeats it."
        passages.append({"id": f"{row['_id']}-{volume}", "title": row["title"], "text": text})
    return passages, [text for question in sample.questions() for text in (question.text, question.paraphrase)]


def ingest(service: Service, passages: Sequence[Body]) -> None:
    """Fill the collection through the API."""
    with httpx.Client(base_url=service.url, timeout=120.0, trust_env=False) as client:
        lines = "\n".join(json.dumps({k: row[k] for k in ("id", "title", "text")}) for row in passages)
        accepted = client.post(
            "/passages",
            params={"collection": COLLECTION},
            content=lines.encode(),
            headers={"Content-Type": "application/x-ndjson"},
        )
        accepted.raise_for_status()
        while (job := client.get(accepted.json()["status_url"]).json())["status"] in {"queued", "running"}:
            time.sleep(POLL_SECONDS)
        if job["status"] != "succeeded":
            raise SystemExit(f"Ingest failed: {job}")


def ask(service: Service, questions: Sequence[str], count: int) -> list[Body]:
    """That many answered queries, each with the sentences it showed."""
    answered = []
    with httpx.Client(base_url=service.url, timeout=60.0, trust_env=False) as client:
        for number in range(count):
            text = questions[number % len(questions)]
            body = {"collection": COLLECTION, "query": text, "include": ["sentences"]}
            answer = client.post("/query", json=body).raise_for_status().json()
            shown = [sentence["sentence_id"] for hit in answer["passages"] for sentence in hit["sentences"]]
            if len(shown) >= 3:
                answered.append({"query_id": answer["query_id"], "shown": shown, "text": text})
    return answered


def verdicts(answered: Sequence[Body], posts: int, expanded: float, draw: random.Random) -> list[Body]:
    """Posts in the order in which they are sent; a tenth repeat an earlier one."""
    repeats = round(posts * REPEATED_SHARE)
    planned: list[Body] = []
    for number in range(posts - repeats):
        episode = draw.choice(answered)
        supported, rejected = draw.sample(episode["shown"], 2)
        body = {
            "collection": COLLECTION,
            "query_id": episode["query_id"],
            "supporting": [supported],
            "rejected": [rejected],
            "complete": draw.random() >= 0.5,
            "judge": f"judge-{draw.randrange(JUDGES)}",
            "confidence": draw.choice([1.0, 0.8, 0.5]),
        }
        if draw.random() < expanded:
            body["expansions"] = [{"method": "facet", "text": draw.choice(answered)["text"]}]
        planned.append({"key": f"soak-{number}", "body": body})
    # Half of the repeats follow at once, so that another client sends the same at the same time.
    followed = Counter(draw.choices(range(len(planned)), k=repeats // 2))
    sent = [post for at, post in enumerate(planned) for _ in range(1 + followed[at])]
    for _ in range(posts - len(sent)):
        at = draw.randrange(1, len(sent))
        sent.insert(at, sent[draw.randrange(at)])
    return sent


@contextlib.contextmanager
def run_poster(service: Service, sent: Sequence[Body], clients: int, rate: float, folder: Path) -> Iterator[Any]:
    """The process that posts; it is gone at the end of the block."""
    plan, results = folder / "plan.json", folder / "results.jsonl"
    plan.write_text(
        json.dumps({"url": service.url, "clients": clients, "rate": rate, "posts": sent}), encoding="utf-8"
    )
    program = [sys.executable, str(Path(__file__).with_name("posting.py")), str(plan), str(results)]
    process = subprocess.Popen(program)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def report(
    faults: Sequence[Fault],
    results: Sequence[Body],
    updates: Sequence[tuple[float, int]],
    drained: float,
    quiet: Asker,
    loaded: Asker,
    used: Mapping[str, float],
) -> None:
    """Print what came of it."""
    began, ended = min(r["began"] for r in results), max(r["ended"] for r in results)
    first: dict[str, float] = {}
    for result in results:
        first[result["key"]] = min(first.get(result["key"], result["ended"]), result["ended"])
    faulty = sum(max(0.0, min(f.ended, ended) - max(f.began, began)) for f in faults)

    def whole(at: float) -> bool:
        return began <= at <= ended and not any(f.began <= at <= f.ended for f in faults)

    span, calm = ended - began, ended - began - faulty
    during = sum(n for at, n in updates if at <= ended)
    print(f"posting {span:.1f} s, of which {faulty:.1f} s in a fault; drained {drained:.1f} s later\n")
    common.table(
        ["rate", "all the time", "without a fault"],
        [
            ["posts/s", len(results) / span, sum(whole(r["ended"]) for r in results) / calm],
            ["verdicts accepted/s", len(first) / span, sum(map(whole, first.values())) / calm],
            ["memory updates/s", during / span, sum(n for at, n in updates if whole(at)) / calm],
        ],
    )
    total = sum(n for _, n in updates)
    print(f"\n{total} memory updates, {total / (span + drained):.0f} a second until the last one was applied\n")
    calm_seconds = [s for at, s in loaded.seconds if whole(at)]
    rows = []
    for name, samples in (
        ("quiet", [s for _, s in quiet.seconds]),
        ("loaded", [s for at, s in loaded.seconds if began <= at <= ended]),
        ("loaded, without a fault", calm_seconds),
    ):
        if samples:
            p50, p95 = (1000 * at for at in common.percentiles(samples))
            base = 1000 * common.percentiles([s for _, s in quiet.seconds])[0]
            rows.append([name, len(samples), p50, p95, p50 / base])
    common.table(["queries", "number", "p50 ms", "p95 ms", "p50 / quiet p50"], rows)
    print(f"\n{loaded.failures} queries were not answered\n")
    common.table(
        ["processor time", "s", "share of all cores", "ms a post"],
        [
            [name, seconds, seconds / span / (os.cpu_count() or 1), 1000 * seconds / len(results)]
            for name, seconds in sorted(used.items(), key=lambda pair: -pair[1])
        ],
    )
    print()
    waits = sorted(first.values())
    common.table(
        ["killed", "after s", "all parts answer again after s", "longest wait for an accepted post s"],
        [[f.what, f.began - began, f.ended - f.began, _gap(waits, f)] for f in faults],
    )
    again = sum(result["tries"] > 1 for result in results)
    print(f"\n{len(results)} posts of {len(first)} verdicts, {again} sent more than once")


def _gap(accepted: Sequence[float], fault: Fault) -> float:
    around = [fault.began, *(at for at in accepted if fault.began <= at <= fault.ended), fault.ended]
    return max(later - earlier for earlier, later in pairwise(around))


def soak(arguments: argparse.Namespace, folder: Path) -> list[str]:
    """Run it all; what is wrong."""
    draw = random.Random(arguments.seed)
    passages, questions = corpus(arguments.data, arguments.passages)
    with Service(folder) as service, tenancy.allow_all_tenants():
        ingest(service, passages)
        answered = ask(service, questions, arguments.questions)
        sent = verdicts(answered, arguments.posts, arguments.expanded, draw)
        app = Application(service.settings, service.addresses)
        try:
            rows = Rows(app)
            quiet, loaded = Asker(service.url, questions), Asker(service.url, questions)
            with ThreadPoolExecutor(1) as pool:
                stopped = threading.Event()
                asking = pool.submit(quiet.run, stopped, arguments.seed)
                time.sleep(QUIET_SECONDS)
                stopped.set()
                asking.result()
                stopped.clear()
                asking = pool.submit(loaded.run, stopped, arguments.seed)
                try:
                    with run_poster(service, sent, arguments.clients, arguments.rate, folder) as poster:
                        clients = {os.getpid(): "the client that asks", poster.pid: "the clients that post"}
                        with Usage(lambda: service.processes() | clients) as usage:
                            faults = disturb(service, arguments.kill_every, draw, lambda: poster.poll() is not None)
                        if poster.returncode:
                            raise SystemExit(f"The clients ended with exit code {poster.returncode}.")
                finally:
                    stopped.set()
                asking.result()
            drained = drain(rows)
            results = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
            report(faults, results, list_updates(rows), drained, quiet, loaded, usage.seconds)
            wrong = check(rows, sent, results, service.postgres.log_path)
            began = time.time()
            verified = app.revocation.verification.verify(app.auth.access.scope(COLLECTION))
            checked = sum(table.rows for table in verified.tables)
            print(f"\nverified {checked} rows in {time.time() - began:.1f} s")
            return wrong + [f"verify: {found}" for found in verified.differences[:10]]
        finally:
            app.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Verdicts under load while parts of the service are killed.")
    parser.add_argument("-n", "--posts", type=int, default=20_000)
    parser.add_argument("-k", "--kill-every", type=float, default=60.0, help="seconds; 0: nothing is killed")
    parser.add_argument("-d", "--data", type=Path, help="BEIR folder; the sample corpus by default")
    parser.add_argument("-p", "--passages", type=int, default=1000)
    parser.add_argument("-q", "--questions", type=int, default=300)
    parser.add_argument("-c", "--clients", type=int, default=8)
    parser.add_argument("-r", "--rate", type=float, default=0.0, help="posts/s offered; 0: as fast as they go")
    parser.add_argument("-e", "--expanded", type=float, default=0.01, help="share of verdicts with an expansion")
    parser.add_argument("-s", "--seed", type=int, default=0)
    parser.add_argument(
        "--keep", type=Path, help="where to run and leave everything, instead of a temporary folder"
    )
    arguments = parser.parse_args()

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    with contextlib.ExitStack() as stack:
        folder = arguments.keep or Path(
            stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        )
        wrong = soak(arguments, folder)
    for line in wrong:
        print(f"WRONG: {line}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
