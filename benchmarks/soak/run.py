"""Does the service lose, double or show what it must not while its parts are killed, and does it stay quick?

    python benchmarks/soak [-n POSTS] [-k SECONDS] [-d DATASET_DIR] [-p PASSAGES] [-q QUESTIONS] [-c CLIENTS]
                           [-r POSTS_PER_SECOND] [-e SHARE] [-s SEED] [--keep DIR]
    python benchmarks/soak -n 3600 -r 2 -k 60 --asked 4 --api 4 --replica --beside --quiet 120

Starts a service of its own in a temporary folder (embedded Postgres and Redis, the API, two workers), fills it with
the sample corpus in several varied copies or the first passages of a BEIR folder, asks its questions, and posts
verdicts on the answers from several clients. A tenth of the posts repeat an earlier one with its Idempotency-Key,
at once or later. Others ask questions all the while. Meanwhile, at random but the same for a seed, a worker, an API
process, Redis, the replica, a Postgres backend or the postmaster is killed (SIGKILL) and started again.

With `--beside`, persons with different readers ask. Passages get other readers, new ones are ingested and revised,
a folder that changes is synchronised, and persons who asked and judged are erased.

Then it waits until no verdict is pending and checks: what was accepted is what was posted, each verdict applied
exactly once, by events, audit rows and the update counts of all states; no deadlock in Postgres' log; no verdict
parked; every answered query is stored; `engram verify` clean; with `--beside` that no answer showed a passage that
was hidden before its question was sent, that each passage is there once with its newest text and readers, and that
nothing is left of the erased; with `--replica` that the replica has the same rows. What is answered 5xx or not at
all is sent again until it stands, and counted.

Rates are over the time in which there was something to post. Latency is of the whole question, as the client sees
it, all tries together. A fault lasts from the kill until all parts answer again. It is *quiet* while all the same
goes on and nothing has been killed yet, without the first ``WARM_SECONDS`` (`report.py`), and *healthy* after the
first kill outside of faults. Exit code 1 if a check fails, or if the 99th percentile of questions while healthy is
more than 3 times the quiet one.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import structlog

import common
from engram.composition.container import Application
from engram.context import tenancy
from engram.wings.local import sample
from running import POLL_SECONDS, Fault, Service, disturb
from soak.actors import Actor, FolderSync, Ingest, Leavers, Place, ReadersChanges
from soak.asking import Askers
from soak.report import report, report_questions
from soak.row_checks import check_erased, check_jobs, check_passages, check_queries, check_replica
from soak.usage import Usage
from soak.verdict_checks import COLLECTION, Body, Rows, check, drain, list_updates

ASKERS = 4
MOST_THREADS = 12
JUDGES = 40
REPEATED_SHARE = 0.1


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


def soak(arguments: argparse.Namespace, folder: Path) -> list[str]:
    """Run it all; what is wrong."""
    draw = random.Random(arguments.seed)
    passages, questions = corpus(arguments.data, arguments.passages)
    service = Service(folder, apis=arguments.api, workers=arguments.workers, replica=arguments.replica)
    with service, tenancy.allow_all_tenants():
        ingest(service, passages)
        answered = ask(service, questions, arguments.questions)
        sent = verdicts(answered, arguments.posts, arguments.expanded, draw)
        place = Place(
            service.url,
            COLLECTION,
            [row["text"] for row in passages],
            questions,
            frozenset(r["id"] for r in passages),
        )
        others = list_others(place, arguments.seed, folder / "notes") if arguments.beside else []
        for other in others:
            other.prepare()
        alone, loaded = (
            Askers(service.url, COLLECTION, questions, place.ledger if others else None, failures=place.failures)
            for _ in range(2)
        )
        with go_on(lambda pool, stopped: alone.start(pool, 1, stopped, arguments.seed)):
            time.sleep(arguments.alone)
        loaded.rate = arguments.asked
        run = Run(arguments, service, folder, sent, draw)
        with go_on(
            lambda pool, stopped: [
                *loaded.start(pool, ASKERS if loaded.rate else 1, stopped, arguments.seed),
                *(pool.submit(other.run, stopped) for other in others),
            ]
        ):
            run.post()
        return conclude(run, place, others, alone, loaded, {row["id"]: row["text"] for row in passages})


def list_others(place: Place, seed: int, folder: Path) -> list[Actor]:
    """What goes on beside questions and verdicts."""
    return [ReadersChanges(place, seed), Ingest(place, seed), FolderSync(place, seed, folder), Leavers(place, seed)]


@contextlib.contextmanager
def go_on(start: Callable[[ThreadPoolExecutor, threading.Event], "list[Future[None]]"]) -> Iterator[None]:
    """Threads that run during the block, and end what they have begun."""
    stopped = threading.Event()
    with ThreadPoolExecutor(MOST_THREADS) as pool:
        started = start(pool, stopped)
        try:
            yield
        finally:
            stopped.set()
        for each in started:
            each.result()


@dataclass
class Run:
    """The verdicts that are posted while parts are killed, and what was seen of it.

    Attributes:
        faults: what was killed.
        results: what each post was answered.
        used: seconds of processors by process.
    """

    arguments: argparse.Namespace
    service: Service
    folder: Path
    sent: Sequence[Body]
    draw: random.Random
    faults: list[Fault] = field(default_factory=list)
    results: list[Body] = field(default_factory=list)
    used: Mapping[str, float] = field(default_factory=dict)

    def post(self) -> None:
        """Post all verdicts, and kill meanwhile."""
        with run_poster(
            self.service, self.sent, self.arguments.clients, self.arguments.rate, self.folder
        ) as poster:
            clients = {os.getpid(): "the client that asks", poster.pid: "the clients that post"}
            with Usage(lambda: self.service.processes() | clients) as usage:
                self.faults = disturb(
                    self.service,
                    self.arguments.kill_every,
                    self.draw,
                    lambda: poster.poll() is not None,
                    self.arguments.quiet,
                )
            if poster.returncode:
                raise SystemExit(f"The clients ended with exit code {poster.returncode}.")
        self.used = usage.seconds
        self.results = [json.loads(line) for line in (self.folder / "results.jsonl").read_text().splitlines()]


def conclude(
    run: Run, place: Place, others: Sequence[Actor], alone: Askers, loaded: Askers, stable: Mapping[str, str]
) -> list[str]:
    """Say what was measured; what is wrong."""
    app = Application(run.service.settings, run.service.addresses)
    try:
        rows = Rows(app)
        drained = drain(rows)
        report(run.faults, run.results, list_updates(rows), drained, run.used)
        missed = report_questions(run.faults, alone, loaded)
        wrong = check(rows, run.sent, run.results, run.service.postgres.log_path) + alone.wrong + loaded.wrong
        wrong += check_queries(rows, [asked.query_id for asked in (*alone.answered, *loaded.answered)])
        if others:
            wrong += place.wrong + check_passages(rows, place.ledger, stable) + check_jobs(rows)
            wrong += check_erased(rows, [each for other in others for each in getattr(other, "erased", ())])
            print("\n" + ", ".join(f"{type(other).__name__}: {other.done} times" for other in others))
        began = time.time()
        verified = app.revocation.verification.verify(app.auth.access.scope(COLLECTION))
        checked = sum(table.rows for table in verified.tables)
        print(f"\nverified {checked} rows in {time.time() - began:.1f} s")
        wrong += [f"verify: {found}" for found in verified.differences[:10]]
        return wrong + missed + check_replica(run.service)
    finally:
        app.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Verdicts under load while parts of the service are killed.")
    parser.add_argument("--api", type=int, default=1, help="processes of the API")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--replica", action="store_true", help="read on a streaming replica")
    parser.add_argument("--beside", action="store_true", help="also change readers, ingest, sync and erase")
    parser.add_argument("--asked", type=float, default=0.0, help="questions/s; 0: one after the other")
    parser.add_argument("--alone", type=float, default=15.0, help="seconds of one client and nothing else")
    parser.add_argument("--quiet", type=float, default=0.0, help="seconds of all this before the first kill")
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
