"""Lagging replicas: two APIs read on a streaming replica that stands still, catches up some time, or is away."""

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import uuid4

import httpx
import psycopg
from sqlalchemy.engine import make_url

from engram.wings.local.servers import EmbeddedPostgres
from tests.faults.installation import Installation, Tally, contents, different, passages
from tests.support import standby, state
from tests.support.processes import PATIENCE_SECONDS, Process, eventually

PASSAGES = 8
QUESTION = "Which spacecraft was the first to cross the asteroid belt?"
WAYS = ("stands still", "catches up", "is away")


@dataclass
class Replicas:
    """A service on a database of its own, with a replica of the server.

    Attributes:
        base: where the database is made.
        primary: its server.
        stack: ends the processes and the replica.
    """

    base: Installation
    primary: EmbeddedPostgres
    draw: random.Random
    stack: ExitStack

    @cached_property
    def site(self) -> Installation:
        """The installation that the processes serve."""
        return self.base.open_neighbour(self.stack)

    @cached_property
    def replica(self) -> EmbeddedPostgres:
        """The replica, while nothing is wrong with it."""
        server = standby.make_replica(self.primary, self.base.folder / "standby")
        self.stack.callback(standby.remove, server)
        server.start()
        return server

    @property
    def _replica_url(self) -> str:
        database = make_url(self.site.application.addresses.database_url).database
        return make_url(self.replica.url).set(database=database).render_as_string(hide_password=False)

    @cached_property
    def clients(self) -> tuple[httpx.Client, httpx.Client]:
        """Clients of two APIs, once everything works."""
        reading = {"READ_DATABASE_URL": self._replica_url}
        starts = [("serve", reading), ("serve", reading), ("worker", {})]
        one, other, worker = (
            self.stack.enter_context(self.site.start(command, **given)) for command, given in starts
        )
        worker.ready()
        return self._client(one), self._client(other)

    def _client(self, api: Process) -> httpx.Client:
        client = httpx.Client(base_url=api.ready().url, timeout=PATIENCE_SECONDS, trust_env=False)
        return self.stack.enter_context(client)

    def lag(self, tally: Tally) -> None:
        """Write through one API while the replica lags, and read what was acknowledged through the other."""
        (one, other), name = self.clients, f"lagging-{uuid4().hex[:12]}"
        self._ingest(one, name, passages(PASSAGES))
        for number, way in enumerate(self.draw.sample(WAYS, len(WAYS))):
            with self._delay_replica(way):
                new = {"id": f"new-{number}", "text": f"The code of crate {number} is {uuid4().hex[:8]}."}
                self._ingest(one, name, [new])
                question = f"What is the code of crate {number}?"
                answer = self._ask(other, name, question)
                if new["id"] not in {passage["passage_id"] for passage in answer["passages"]}:
                    tally.note([f"a passage that was acknowledged is not in the answer in round {number}"])
                if not number:
                    self._judge(one, name, self._ask(one, name, QUESTION)["query_id"])
                if not self._ask(other, name, QUESTION)["trace"]["recalled"]:
                    tally.note([f"a verdict that was acknowledged has no effect in round {number}"])
                tally.count(hit=self._is_behind())
        self._catch_up()
        if apart := different(contents(self.site.application.addresses.database_url), contents(self._replica_url)):
            tally.note([f"primary and replica differ in {apart}"])
        eventually(lambda: other.get("/readyz").json()["replica"] == "ok", "readiness of the replica")
        tally.note(self.site.findings(workers=True))

    @contextmanager
    def _delay_replica(self, way: str) -> Iterator[None]:
        """Have the replica lag during the block."""
        if way == "is away":
            self.replica.stop()
            try:
                yield
            finally:
                self.replica.start()
            return
        with standby.connect_to(self.replica) as connection:
            connection.execute("SELECT pg_wal_replay_pause()")
            later = threading.Timer(self.draw.uniform(0.0, 1.0), self._resume)
            if way == "catches up":
                later.start()
            try:
                yield
            finally:
                later.cancel()
                connection.execute("SELECT pg_wal_replay_resume()")

    def _resume(self) -> None:
        with standby.connect_to(self.replica) as connection:
            connection.execute("SELECT pg_wal_replay_resume()")

    def _is_behind(self) -> bool:
        """Compare the replica with the primary; one that is away is behind."""
        try:
            return self._position() < self._end()
        except psycopg.OperationalError:
            return True

    def _position(self) -> int:
        with standby.connect_to(self.replica) as connection:
            row = connection.execute("SELECT (pg_last_wal_replay_lsn() - '0/0')::bigint").fetchone()
        return _number(row)

    def _end(self) -> int:
        with standby.connect_to(self.primary) as connection:
            row = connection.execute("SELECT (pg_current_wal_lsn() - '0/0')::bigint").fetchone()
        return _number(row)

    def _catch_up(self) -> None:
        end = self._end()
        eventually(lambda: self._position() >= end, "the replica's catching up")

    def _ingest(self, client: httpx.Client, name: str, lines: list[dict[str, Any]]) -> None:
        """Ingest, and wait until the API acknowledges it."""
        answer = client.post("/passages", json={"collection": name, "passages": lines})
        assert answer.status_code == 202, answer.text
        job = answer.json()["job_id"]
        while (status := client.get(f"/jobs/{job}").json()["status"]) in ("queued", "running"):
            time.sleep(0.05)
        assert status == "succeeded"

    def _ask(self, client: httpx.Client, name: str, question: str) -> dict[str, Any]:
        answer = client.post("/query", json={"collection": name, "query": question, "include": ["trace"]})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def _judge(self, client: httpx.Client, name: str, query_id: str) -> None:
        body = {
            "collection": name,
            "query_id": query_id,
            "supporting": state.list_sentence_ids(self.site.application, name)[:1],
            "wait": True,
        }
        answer = client.post("/feedback", json=body, headers={"idempotency-key": uuid4().hex})
        assert answer.status_code == 200, answer.text


def _number(row: "tuple[object, ...] | None") -> int:
    assert row is not None
    return int(str(row[0]))


FAULTS: Mapping[str, Callable[[Replicas, Tally], None]] = {"replica that lags or is away": Replicas.lag}
"""Name of each fault -> its repetition."""
