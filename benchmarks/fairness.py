"""Can one tenant slow another one down, whatever it sends?

    nice -n 19 python benchmarks/fairness.py [-n QUERIES] [--only FLOOD ...]

Starts a service of its own in a temporary folder (embedded Postgres and Redis, the API, one worker), with access
keys and with the limits that hold by default where other machines reach it: 20 requests a second and 16 at once for
each key. Tenant ``a`` has four keys and floods the service from a process of its own: with queries, half of them as
long as a question may be; with verdicts; with sessions; with tokens that nobody signed; with passages, one of them
200,000 characters of ``a-``; and with all of it at once. Meanwhile tenant ``b`` asks one question after the other,
sends a passage and looks for it, and judges an answer and looks whether the verdict is applied.

Each flood is preceded by the same questions without it, so that whatever else the machine does falls on both. Exit
code 1 if the 95th percentile of ``b`` is more than 3 times its quiet value, its passage is found later than after
10 seconds, or its verdict is applied later than after 5.
"""

import argparse
import contextlib
import multiprocessing
import os
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import httpx

import common
from engram.composition.container import Application
from engram.context import tenancy
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from engram.services.encoders.encoder import QUESTION_TOKENS
from engram.wings.local import sample
from running import Service

LIMITS = {"ENGRAM_ACCESS": "keys", "ENGRAM_HOST": "0.0.0.0"}
MOST_TIMES, MOST_FOUND_SECONDS, MOST_APPLIED_SECONDS = 3.0, 10.0, 5.0
KEYS = 4
THREADS = {"queries": 16, "verdicts": 16, "sessions": 8, "tokens": 16, "passages": 4}
FLOODS = (*THREADS, "everything")
PAUSE_SECONDS = 0.05
WARM = 10
LEAD_SECONDS = 4.0
JOIN_SECONDS = 5.0
GIVE_UP_SECONDS = 60.0
QUESTIONS = [question.text for question in sample.questions()]
LONGEST_QUESTION = "." * QUESTION_TOKENS


def queries(http: httpx.Client, at: int, target: "Target") -> httpx.Response:
    question = LONGEST_QUESTION if at % 2 else QUESTIONS[at % len(QUESTIONS)]
    return http.post("/query", json={"collection": "docs", "query": question})


def verdicts(http: httpx.Client, at: int, target: "Target") -> httpx.Response:
    body = {"collection": "docs", "query_id": target.judged, "none_helped": True}
    return http.post("/feedback", json=body, headers={"idempotency-key": str(uuid.uuid4())})


def sessions(http: httpx.Client, at: int, target: "Target") -> httpx.Response:
    return http.post("/sessions", json={"collection": "docs", "question": QUESTIONS[at % len(QUESTIONS)]})


def tokens(http: httpx.Client, at: int, target: "Target") -> httpx.Response:
    return http.get("/collections", headers={"authorization": f"Bearer a.{uuid.uuid4().hex}.c"})


def passages(http: httpx.Client, at: int, target: "Target") -> httpx.Response:
    text = " ".join(
        f"Town {at} has {n} bridges over the river Elbe, the last of 19{n % 90 + 10}." for n in range(12)
    )
    many = [{"id": f"{at}-{n}", "title": f"Town {at}-{n}", "text": text} for n in range(200)]
    if at % 4 == 0:
        many.append({"id": f"{at}-long", "text": "a-" * 100_000})
    return http.post("/passages", json={"collection": f"flood-{at % 8}", "passages": many})


SENDERS: Mapping[str, Callable[[httpx.Client, int, "Target"], httpx.Response]] = {
    sender.__name__: sender for sender in (queries, verdicts, sessions, tokens, passages)
}


@dataclass(frozen=True)
class Target:
    """Where a flood goes: the service, the keys of its tenant, and an answer to judge."""

    url: str
    keys: Sequence[str]
    judged: str


def flood(kinds: Sequence[str], orders: Any, begun: Event, over: Event, counts: Any) -> None:
    """Send requests of these kinds from many threads until it is over, and count the answers by status."""
    target: Target = orders.get()
    statuses: Counter[str] = Counter()
    lock = threading.Lock()

    def send(kind: str, key: str) -> None:
        with common.open_client(target.url, key) as http:
            for at in range(10**9):
                if over.is_set():
                    return
                try:
                    status = str(SENDERS[kind](http, at, target).status_code)
                except httpx.HTTPError as error:
                    status = type(error).__name__
                with lock:
                    statuses[f"{kind} {status}"] += 1
                begun.set()

    turns = cycle(target.keys)
    threads = [
        threading.Thread(target=send, args=(kind, next(turns)), daemon=True)
        for kind in kinds
        for _ in range(THREADS[kind])
    ]
    for thread in threads:
        thread.start()
    over.wait()
    ends = time.monotonic() + JOIN_SECONDS
    for thread in threads:
        thread.join(max(0.0, ends - time.monotonic()))
    counts.put(dict(statuses))


class FloodProcess:
    """A process that waits to flood the service; made early, as it takes long to start on a busy machine."""

    def __init__(self, name: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._begun, self._over = context.Event(), context.Event()
        self._orders, self._counts = context.Queue(), context.Queue()
        kinds = list(THREADS) if name == "everything" else [name]
        arguments = (kinds, self._orders, self._begun, self._over, self._counts)
        self._process = context.Process(target=flood, args=arguments, daemon=True)
        self._process.start()

    def begin(self, target: Target) -> None:
        """Flood the service, and return once an answer came and some more were asked for."""
        self._orders.put(target)
        if not self._begun.wait(GIVE_UP_SECONDS):
            raise SystemExit("The flood did not begin.")
        time.sleep(LEAD_SECONDS)

    def end(self) -> Mapping[str, int]:
        """End the flood; how often each status came back."""
        self._over.set()
        sent: Mapping[str, int] = self._counts.get(timeout=GIVE_UP_SECONDS)
        self._process.kill()
        return sent


def ask_questions(http: httpx.Client, count: int) -> list[float]:
    """Milliseconds that each of so many questions took; one that is not answered counts as given up."""
    took: list[float] = []
    for at in range(count):
        began = time.perf_counter()
        try:
            answer = http.post("/query", json={"collection": "docs", "query": QUESTIONS[at % len(QUESTIONS)]})
            ok = answer.status_code == httpx.codes.OK
        except httpx.HTTPError:
            ok = False
        took.append((time.perf_counter() - began) * 1000.0 if ok else GIVE_UP_SECONDS * 1000.0)
        time.sleep(PAUSE_SECONDS)
    return took


def measure_seconds_until(ready: Callable[[], bool]) -> float:
    """Seconds until something is so, or the time after which nobody waits any more."""
    began = time.monotonic()
    while time.monotonic() - began < GIVE_UP_SECONDS:
        with contextlib.suppress(httpx.HTTPError, KeyError):
            if ready():
                return time.monotonic() - began
        time.sleep(0.2)
    return GIVE_UP_SECONDS


def measure_ingest_seconds(http: httpx.Client) -> float:
    """Seconds from sending a new passage to an answer that has it; says on stderr how long each step took."""
    name = f"Zq{uuid.uuid4().hex[:8]}"
    body = {"collection": "docs", "passages": [{"id": name, "text": f"The town of {name} lies on the river Oder."}]}
    began = time.monotonic()
    job = http.post("/passages", json=body).raise_for_status().json()["job_id"]
    accepted = time.monotonic() - began
    query = {"collection": "docs", "query": f"On which river lies the town of {name}?"}

    def is_in_answer() -> bool:
        return name in {hit["passage_id"] for hit in http.post("/query", json=query).json()["passages"]}

    measure_seconds_until(is_in_answer)
    took = time.monotonic() - began
    times = http.get(f"/jobs/{job}", params={"collection": "docs"}).json()
    print(f"accepted after {accepted:.1f} s, job {times['created_at']} to {times['finished_at']}", file=sys.stderr)
    return took


def measure_verdict_seconds(http: httpx.Client) -> float:
    """Seconds from posting a verdict to its being applied."""
    query = http.post("/query", json={"collection": "docs", "query": QUESTIONS[0]}).json()["query_id"]
    began = time.monotonic()
    posted = http.post(
        "/feedback",
        json={"collection": "docs", "query_id": query, "none_helped": True},
        headers={"idempotency-key": str(uuid.uuid4())},
    ).raise_for_status()
    event = posted.json()["feedback_id"]
    measure_seconds_until(
        lambda: http.get(f"/feedback/{event}", params={"collection": "docs"}).json()["status"] == "applied"
    )
    return time.monotonic() - began


@dataclass(frozen=True)
class Row:
    """What one flood did to the other tenant."""

    name: str
    quiet_ms: float
    flooded_ms: float
    found: float
    applied: float
    sent: Mapping[str, int]

    @property
    def times(self) -> float:
        return self.flooded_ms / self.quiet_ms

    def format_line(self) -> str:
        """The same in a line, with what was sent and how busy the machine was."""
        return (
            f"{self.name}: p95 {self.quiet_ms:.0f} -> {self.flooded_ms:.0f} ms ({self.times:.2f} times), passage "
            f"{self.found:.1f} s, verdict {self.applied:.1f} s, load {os.getloadavg()[0]:.1f}, "
            f"sent {dict(self.sent)}"
        )

    @property
    def holds(self) -> bool:
        return (
            self.times <= MOST_TIMES and self.found <= MOST_FOUND_SECONDS and self.applied <= MOST_APPLIED_SECONDS
        )


def ingest_sample(http: httpx.Client) -> None:
    """Give a tenant the sample corpus."""
    lines = sample.corpus()
    http.post(
        "/passages", params={"collection": "docs"}, content=lines, headers={"content-type": "application/x-ndjson"}
    ).raise_for_status()
    measure_seconds_until(lambda: all(job["status"] == "succeeded" for job in _jobs(http)))


def _jobs(http: httpx.Client) -> list[dict[str, Any]]:
    return list(http.get("/jobs", params={"collection": "docs"}).json()["jobs"])


def delete_flooded_passages(http: httpx.Client) -> None:
    """Remove what a flood of passages left, so that the next flood is alone."""
    for at in range(8):
        http.delete(f"/collections/flood-{at}", timeout=GIVE_UP_SECONDS)


def make_access_key(app: Application, name: str, tenant: str) -> str:
    """Make an access key that allows everything to its tenant."""
    return app.auth.access_keys.make(LOCAL, AccessKeyRequest(name=name, scopes={"*": ["admin"]}), tenant).key


def measure_row(name: str, flooding: FloodProcess, target: Target, http: httpx.Client, count: int) -> Row:
    """Measure a tenant without and with one flood of the other."""
    quiet = ask_questions(http, count)
    flooding.begin(target)
    slow = ask_questions(http, count)
    found, applied = measure_ingest_seconds(http), measure_verdict_seconds(http)
    sent = flooding.end()
    return Row(name, common.percentiles(quiet)[1], common.percentiles(slow)[1], found, applied, sent)


def main() -> None:
    """Measure each flood and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "--queries", type=int, default=100, help="Questions with and without each flood.")
    parser.add_argument("--only", nargs="*", choices=FLOODS, default=FLOODS, help="Floods; by default all.")
    arguments = parser.parse_args()
    os.environ |= LIMITS
    rows: list[Row] = []
    with contextlib.ExitStack() as stack:
        floods = {name: FloodProcess(name) for name in arguments.only}
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        service = stack.enter_context(Service(Path(folder), workers=1))
        stack.enter_context(tenancy.allow_all_tenants())
        app = stack.enter_context(contextlib.closing(Application(service.settings, service.addresses)))
        keys = [make_access_key(app, f"a{at}", "a") for at in range(KEYS)]
        theirs = stack.enter_context(common.open_client(service.url, keys[0]))
        http = stack.enter_context(common.open_client(service.url, make_access_key(app, "b", "b")))
        for one in (theirs, http):
            ingest_sample(one)
        judged = theirs.post("/query", json={"collection": "docs", "query": QUESTIONS[0]}).json()["query_id"]
        ask_questions(http, WARM)
        target = Target(service.url, keys, judged)
        for name, flooding in floods.items():
            rows.append(measure_row(name, flooding, target, http, arguments.queries))
            print(rows[-1].format_line(), file=sys.stderr, flush=True)
            delete_flooded_passages(theirs)
    common.table(
        "flood of tenant a, b's p95 quiet (ms), b's p95 (ms), times, passage found (s), verdict applied (s)",
        [(row.name, row.quiet_ms, row.flooded_ms, row.times, row.found, row.applied) for row in rows],
    )
    sys.exit(0 if all(row.holds for row in rows) else 1)


if __name__ == "__main__":
    main()
