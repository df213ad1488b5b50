"""Clocks that jump: those of the API and a worker, forward and back by up to days; other clocks do not."""

import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from uuid import uuid4

import httpx
import libfaketime

from tests.faults.installation import Installation, Tally, passages
from tests.support import state
from tests.support.processes import PATIENCE_SECONDS, Process, eventually
from tests.support.threads import ThreadPoolExecutor

LIBRARY = Path(libfaketime.__file__).parent / "vendor/libfaketime/src/libfaketime.so.1"
DAY = 86_400.0
SECONDS = (2.0, 90.0, 3_600.0, DAY, 10.0 * DAY)
"""Sizes of jumps, about: within a lease, beyond it, into another hour, day and week."""
AHEAD_SECONDS = 400.0 * DAY
"""Clock of a worker that starts: all that is ever deleted for its age would be old enough."""
JUMPS = 5
CLIENTS = 2
PASSAGES = 12
QUESTION = "Which spacecraft was the first to cross the asteroid belt?"


@dataclass
class Clocks:
    """A service on a database of its own, whose processes believe what a file says of the time.

    Attributes:
        base: where the database is made.
        stack: ends the processes.
    """

    base: Installation
    draw: random.Random
    stack: ExitStack

    @cached_property
    def site(self) -> Installation:
        """The installation that the processes serve."""
        return self.base.open_neighbour(self.stack)

    @cached_property
    def client(self) -> httpx.Client:
        """A client of the API, once everything works."""
        self._set(0.0)
        faked = {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        python = Path(sys.executable)
        api, worker = (
            self.stack.enter_context(Process(command, self.site.folder, {**self.site.env, **faked}, python=python))
            for command in ("serve", "worker")
        )
        worker.ready()
        url = api.ready().url
        return self.stack.enter_context(httpx.Client(base_url=url, timeout=PATIENCE_SECONDS, trust_env=False))

    def _start(self, command: str, file: Path) -> Process:
        """Start a process that believes what the file says of the time; it ends with the stack."""
        faked = {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }
        env = {**self.site.env, **faked}
        return self.stack.enter_context(Process(command, self.site.folder, env, python=Path(sys.executable)))

    @property
    def _file(self) -> Path:
        return self.site.folder / "clock"

    def _set(self, seconds: float) -> None:
        """Move the clock of the processes to so many seconds after the true time."""
        written = self._file.with_suffix(".new")
        written.write_text(f"{seconds:+.3f}", encoding="ascii")
        os.replace(written, self._file)

    @cached_property
    def _worker_ahead(self) -> Process:
        """A worker that started with a clock far ahead, and still has it."""
        file = self.site.folder / "clock-ahead"
        file.write_text(f"{AHEAD_SECONDS:+.3f}", encoding="ascii")
        return self._start("worker", file).ready()

    def jump(self, tally: Tally) -> None:
        """Ingest, ask and judge while the clock jumps; once it is right again, everything is there once."""
        http, name = self.client, f"clock-{uuid4().hex[:12]}"
        assert self._worker_ahead.running
        lines = passages(2 * PASSAGES)
        self._ingest(name, lines[:PASSAGES])
        self._drain(name)
        over = threading.Event()
        with ThreadPoolExecutor(CLIENTS) as pool:
            judging = [pool.submit(self._judge, name, over, f"{self.draw.random()}") for _ in range(CLIENTS)]
            self._ingest(name, lines[PASSAGES:])
            with self._set_clock_back():
                for _ in range(JUMPS):
                    time.sleep(self.draw.uniform(0.05, 0.5))
                    self._set(self.draw.choice((-1, 1)) * self.draw.choice(SECONDS) * self.draw.uniform(0.5, 1.0))
                    tally.count(hit=not any(one.done() for one in judging))
                time.sleep(self.draw.uniform(0.05, 0.5))
            over.set()
            acknowledged = sorted(event for one in judging for _, event in one.result())
        self._drain(name)
        statuses = state.event_statuses(self.site.application, name)
        if sorted(statuses) != acknowledged or {*statuses.values()} - {"applied"}:
            tally.note([f"{len(acknowledged)} verdicts were acknowledged, and there are {statuses}"])
        if {row["external_id"] for row in state.rows(self.site.application, name, "passage")} != {
            line["id"] for line in lines
        }:
            tally.note(["passages are lost or doubled"])
        failed = [row for row in state.rows(self.site.application, name, "job") if row["status"] != "succeeded"]
        tally.note([f"a {row['kind']} job is {row['status']}: {row['error']}" for row in failed])
        queries = {query for one in judging for query, _ in one.result()}
        if lost := queries - {str(row["id"]) for row in state.rows(self.site.application, name, "episode")}:
            tally.note([f"{len(lost)} of {len(queries)} queries are lost"])
        answer = http.post("/query", json={"collection": name, "query": QUESTION})
        if answer.status_code != 200 or not answer.json()["passages"]:
            tally.note([f"the API answers {answer.status_code}: {answer.text}"])
        tally.note(self.site.findings(workers=True))

    @contextmanager
    def _set_clock_back(self) -> Iterator[None]:
        """Set the clock right after the block."""
        try:
            yield
        finally:
            self._set(0.0)

    def _ingest(self, name: str, lines: list[dict[str, str]]) -> None:
        answer = self.client.post("/passages", json={"collection": name, "passages": lines})
        assert answer.status_code == 202, answer.text

    def _judge(self, name: str, over: threading.Event, seed: str) -> list[tuple[str, int]]:
        """Ask and judge until it is over; gives the queries and verdicts that were acknowledged."""
        draw, acknowledged = random.Random(seed), list[tuple[str, int]]()
        sentences = state.list_sentence_ids(self.site.application, name)
        while not over.is_set():
            query = self.client.post("/query", json={"collection": name, "query": QUESTION})
            assert query.status_code == 200, query.text
            body = {
                "collection": name,
                "query_id": query.json()["query_id"],
                "supporting": draw.sample(sentences, 2),
                "wait": draw.random() < 0.3,
            }
            answer = self.client.post("/feedback", json=body, headers={"idempotency-key": uuid4().hex})
            assert answer.status_code in (200, 202), answer.text
            acknowledged.append((query.json()["query_id"], answer.json()["feedback_id"]))
        return acknowledged

    def _drain(self, name: str) -> None:
        """Wait until no verdict and no job of the collection waits."""
        application, waiting = self.site.application, ("queued", "running")
        eventually(lambda: "pending" not in state.event_statuses(application, name).values(), "end of verdicts")
        eventually(
            lambda: not any(row["status"] in waiting for row in state.rows(application, name, "job")), "end of jobs"
        )


FAULTS: Mapping[str, Callable[[Clocks, Tally], None]] = {"clock that jumps both ways": Clocks.jump}
"""Name of each fault -> its repetition."""
