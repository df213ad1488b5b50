"""The phases of a run, one after the other, while somebody watches that the service lives."""

import itertools
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, cast

import httpx

from tests.conftest import CURIE
from tests.fuzz import mutations, rows, sockets, watch
from tests.fuzz.guests import MARK, Guests
from tests.fuzz.ledger import Ledger

COLLECTION = "fuzz"
SHARES = {"rows": 0.45, "bodies": 0.45, "sockets": 0.1}
AT_ONCE = 6
SOCKETS_AT_ONCE = 20
HALF_SENT = 600
PATIENCE_SECONDS = 90.0
"""For an answer, which a request's deadline of 30 s ends long before."""
STALLED_SECONDS = 5.0
APPLIED_SECONDS = 120.0
JOB_SECONDS = 120.0


@dataclass(frozen=True)
class Bounds:
    """How long and how much: a phase ends with whichever comes first."""

    seconds: float
    bodies: int
    sockets: int


def run(url: str, seed: int, bounds: Bounds, ledger: Ledger, guests: Guests | None = None) -> dict[str, Any]:
    """All phases against a service, by guests where it needs keys; how many of each kind there were."""
    known = fill(url, owner(guests))
    counts: dict[str, Any] = {}
    with _watch_liveness(url, ledger) as worst:
        until = time.monotonic() + bounds.seconds * SHARES["rows"]
        counts["rows"] = rows.run(url, known, seed, until, ledger, PATIENCE_SECONDS, guests)
        known = fill(url, owner(guests))  # rows delete queries
        counts["bodies"] = bodies(url, known, seed, bounds, ledger, guests)
        counts["sockets"] = raw(url, seed, bounds, ledger)
    counts["liveness_seconds_worst"] = round(max(worst, default=0.0), 3)
    counts["verdicts_in_the_log"] = account(url, ledger, owner(guests))
    if guests is not None:
        counts["refused_to_guests"] = guests.refused
    return counts


def owner(guests: Guests | None) -> dict[str, str]:
    """Headers of whoever may do everything."""
    return {} if guests is None else guests.owner.headers


def fill(url: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Give the service something to speak of; what there is, by the names that requests have for it."""
    with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=PATIENCE_SECONDS) as client:
        jobs = {}
        for collection in (COLLECTION, rows.SPARE):
            body = {"collection": collection, "passages": [*CURIE, {"id": "marked", "text": f"{MARK} is a moor."}]}
            jobs[collection] = client.post("/passages", json=body).raise_for_status().json()["job_id"]
        deadline = time.monotonic() + JOB_SECONDS
        while client.get(f"/jobs/{jobs[COLLECTION]}").json()["status"] != "succeeded":
            if time.monotonic() > deadline:
                raise RuntimeError("the passages were not ingested")
            time.sleep(0.1)
        asked = {"query": "Where was Marie Curie born?", "collection": COLLECTION}
        answer = client.post("/query", json=asked).raise_for_status().json()
        sentences = [one["sentence_id"] for passage in answer["passages"] for one in passage["sentences"]]
        verdict = {"query_id": answer["query_id"], "collection": COLLECTION, "supporting": sentences[:1]}
        given = client.post("/feedback", json=verdict, headers={"idempotency-key": str(uuid.uuid4())})
        return {
            "collection": COLLECTION,
            "name": COLLECTION,
            "passage_id": "curie",
            "query_id": answer["query_id"],
            "sentence_id": sentences[0],
            "sentences": sentences,
            "job_id": jobs[COLLECTION],
            "feedback_id": given.raise_for_status().json()["feedback_id"],
        }


def bodies(
    url: str, known: Mapping[str, Any], seed: int, bounds: Bounds, ledger: Ledger, guests: Guests | None = None
) -> int:
    """Send mutated bodies; how many."""
    right = mutations.seeds(known)
    threads = threading.local()

    def open_client() -> httpx.Client:
        """Open the thread's own: of a shared one, a thread may close a connection that another reads."""
        if not hasattr(threads, "client"):
            opened = httpx.Client(base_url=url, trust_env=False, timeout=PATIENCE_SECONDS)
            threads.client = stack.enter_context(opened)
        return cast("httpx.Client", threads.client)

    def send(number: int) -> None:
        client = open_client()
        sent = mutations.mutate(seed, number, right, known)
        guest = None if guests is None else guests.get(number)
        own = {} if guest is None or "authorization" in sent.headers else guest.headers
        where = f"{sent.method} {sent.path}"
        began = time.monotonic()
        try:
            request = client.build_request(
                sent.method,
                sent.target,
                content=sent.content,
                headers={name: value.encode("latin-1") for name, value in (sent.headers | own).items()},
            )
            answer = client.send(request)
        except httpx.TimeoutException:
            ledger.record_hang("bodies", where, f"number {number}: {sent}")
        except httpx.TransportError as error:
            ledger.record_finding("connection", where, f"number {number}: {type(error).__name__}: {error}: {sent}")
        else:
            seconds = time.monotonic() - began
            shown = f"number {number}: {sent}"
            ledger.record_answer("bodies", where, answer.status_code, seconds, answer.content, shown)
            if guests is not None and guest is not None and own == guest.headers:
                guests.check(guest, where, answer.status_code, answer.content, shown, ledger)

    with ExitStack() as stack:
        return _many(send, AT_ONCE, bounds.bodies, bounds.seconds * SHARES["bodies"])


def raw(url: str, seed: int, bounds: Bounds, ledger: Ledger) -> int:
    """Send what no library would; how many."""
    parsed = httpx.URL(url)
    address = (parsed.host, parsed.port or 80)
    sent = _many(
        lambda number: sockets.send(address, seed, number, ledger),
        SOCKETS_AT_ONCE,
        bounds.sockets,
        bounds.seconds * SHARES["sockets"],
    )
    sockets.flood(address, HALF_SENT)
    return sent


def _many(send: Callable[[int], None], at_once: int, most: int, seconds: float) -> int:
    """Send one after the other from so many threads, until there are enough or the time is over."""
    numbers = itertools.count()
    until = time.monotonic() + seconds
    done: list[int] = []

    def send_numbers() -> None:
        while time.monotonic() < until and (number := next(numbers)) < most:
            send(number)
            done.append(number)

    with ThreadPoolExecutor(at_once) as pool:
        for one in [pool.submit(send_numbers) for _ in range(at_once)]:
            one.result()
    return len(done)


@contextmanager
def _watch_liveness(url: str, ledger: Ledger) -> Iterator[list[float]]:
    """Ask all the time whether it lives; how long each answer took."""
    waits: list[float] = []
    # A process of its own, since making requests up keeps this one busy.
    watching = subprocess.Popen([sys.executable, watch.__file__, url], stdout=subprocess.PIPE, text=True)
    try:
        yield waits
    finally:
        watching.terminate()
        said, _ = watching.communicate()
    for line in said.splitlines():
        seconds, _, problem = line.partition(" ")
        waits.append(float(seconds))
        if problem or waits[-1] > STALLED_SECONDS:
            ledger.record_finding("stalled", "GET /healthz", f"{problem or 'alive'} after {seconds} s")


def account(url: str, ledger: Ledger, headers: Mapping[str, str] | None = None) -> int:
    """Look every accepted verdict up in the log, once no more of them wait; how many the log has."""
    found = 0
    with httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=PATIENCE_SECONDS) as client:
        for collection, accepted in ledger.verdicts.items():
            deadline = time.monotonic() + APPLIED_SECONDS
            while (log := _log(client, collection)) is not None and "pending" in log.values():
                if time.monotonic() > deadline:
                    waiting = [identity for identity, status in log.items() if status == "pending"]
                    ledger.record_finding("verdict waits", collection, f"{waiting[:10]} after {APPLIED_SECONDS} s")
                    break
                time.sleep(0.5)
            if log is None:  # with a collection that was deleted its log goes
                if collection == COLLECTION:
                    ledger.record_finding("verdict lost", collection, "the collection is gone")
                continue
            found += len(log)
            if lost := sorted(accepted - log.keys()):
                ledger.record_finding("verdict lost", collection, f"{len(lost)} of {len(accepted)}: {lost[:10]}")
            if parked := [identity for identity, status in log.items() if status == "parked"]:
                ledger.record_finding("verdict parked", collection, f"{len(parked)}: {parked[:10]}")
    return found


def _log(client: httpx.Client, collection: str) -> dict[int, str] | None:
    """Each verdict that a collection's log has, with where it stands; None if there is no such collection."""
    log: dict[int, str] = {}
    after: Any = None
    while True:
        asked = {"collection": collection, "limit": 1_000} | ({} if after is None else {"after": after})
        answer = client.get("/feedback", params=asked)
        if answer.status_code == 404:
            return None
        page = answer.raise_for_status().json()
        log |= {row["feedback_id"]: row["status"] for row in page["feedback"]}
        after = page["next_after"]
        if after is None:
            return log
