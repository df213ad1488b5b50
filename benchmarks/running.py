"""A whole Engram of its own, whose parts can be killed and are started again."""

import contextlib
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg

from engram.composition.container import Servers
from engram.config.settings import Settings
from engram.storage.schema_revision import migrate
from engram.wings.local.runtime.supervisor import Child
from engram.wings.local.servers import EmbeddedPostgres, EmbeddedRedis
from engram.wings.local.servers.child_process import spawn

READY_SECONDS = 300.0
PROBE_SECONDS = 2.0
BACKLOG = 2_048
POLL_SECONDS = 0.1
BACKENDS = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
NAMED_BACKENDS = "SELECT pid, application_name FROM pg_stat_activity WHERE application_name <> ''"


@dataclass
class Part(Child):
    """One of Engram's own processes, what it says kept in a file."""

    log: Path = Path()
    said: int = 0

    def start(self) -> None:
        with self.log.open("ab") as output:
            self.said = output.tell()
            self.process = spawn(
                self.command,
                death_signal=signal.SIGTERM,
                env=self.env,
                output=output.fileno(),
                keep_open=self.keep_open,
            )

    def says(self, text: str) -> bool:
        """Whether it has said that since it was started."""
        with self.log.open("rb") as said:
            said.seek(self.said)
            return text.encode() in said.read()


@dataclass(frozen=True)
class Fault:
    """Something was killed, and all parts answered again."""

    what: str
    began: float
    ended: float


class Service:
    """All processes of one Engram.

    Several API processes take connections from one socket, as those of ``engram up --api N`` do. Each has another
    one of its own, where it is asked whether it is ready.
    """

    def __init__(
        self, folder: Path, workers: int = 2, python: str = sys.executable, *, apis: int = 1, replica: bool = False
    ) -> None:
        """``replica``: questions are read on a streaming replica; takes the repository's root on PYTHONPATH."""
        self._sockets = [socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) for _ in range(apis + 1)]
        ports = [int(listening.getsockname()[1]) for listening in self._sockets]
        if apis == 1:
            self._close_sockets()
        self._probed = [f"http://127.0.0.1:{port}/readyz" for port in (ports[:1] if apis == 1 else ports[1:])]
        self._workers = workers
        self.settings = Settings(_env_file=None, data_dir=folder, port=ports[0], database_url=None, redis_url=None)
        self.postgres = EmbeddedPostgres(
            folder / "postgres",
            self.settings.local_user,
            memory_mb=self.settings.local_memory_mb,
            options={"wal_keep_size": "1GB"} if replica else None,
        )
        self.replica: EmbeddedPostgres | None = None
        self.redis = EmbeddedRedis(folder / "redis")
        self._with_replica = replica
        self._folder = folder
        self._python = python
        self._http = httpx.Client(timeout=PROBE_SECONDS, trust_env=False)
        self._parts: list[Part] = []

    @property
    def url(self) -> str:
        """Base URL of the API."""
        return f"http://127.0.0.1:{self.settings.port}"

    @property
    def addresses(self) -> Servers:
        """Where the servers are."""
        return Servers(self.postgres.url, self.redis.url)

    def __enter__(self) -> "Service":
        self.postgres.start()
        self.redis.start()
        migrate(self.postgres.url)
        if self._with_replica:
            from tests.support.standby import make_replica

            self.replica = make_replica(self.postgres, self._folder / "replica")
            self.replica.start()
        for part in self._make_parts():
            self._parts.append(part)
            part.start()
            self.wait_until_ready()  # one after the other: the first one exports the encoder
        return self

    def _make_parts(self) -> Iterator[Part]:
        if not self._sockets:
            yield self._make_part("api", "serve")
        for at, own in enumerate(self._sockets[1:], start=1):
            yield self._make_part(f"api-{at}", "serve", listening=(self._sockets[0], own))
        for at in range(1, self._workers + 1):
            yield self._make_part(f"worker-{at}", "worker")

    def _make_part(self, name: str, command: str, listening: Sequence[socket.socket] = ()) -> Part:
        handed = tuple(each.fileno() for each in listening)
        env = dict(os.environ) | {
            "DATABASE_URL": self.postgres.url,
            "REDIS_URL": self.redis.url,
            "ENGRAM_DATA_DIR": str(self._folder),
            "ENGRAM_HOST": "127.0.0.1",
            "ENGRAM_PORT": str(self.settings.port),
            "PGAPPNAME": name,
        }
        if handed:
            env["ENGRAM_EMBEDDING_THREADS"] = str(max(1, (os.cpu_count() or 1) // len(self._probed)))
        if self.replica is not None:
            env["READ_DATABASE_URL"] = self.replica.url
        descriptors = (text for each in handed for text in ("--fd", str(each)))
        program = (self._python, "-P", "-m", "engram.cli", command, *descriptors)
        return Part(name, program, env, keep_open=handed, log=self._folder / f"{name}.log")

    def __exit__(self, *_: object) -> None:
        for part in self._parts:
            part.terminate()
        for part in self._parts:
            part.wait(time.monotonic() + 20)
        self._http.close()
        self._close_sockets()
        self.redis.stop()
        if self.replica is not None:
            self.replica.stop()
        self.postgres.stop()

    def _close_sockets(self) -> None:
        while self._sockets:
            self._sockets.pop().close()

    def wait_until_ready(self) -> None:
        """Wait until every part answers."""
        deadline = time.monotonic() + READY_SECONDS
        while not self._ready():
            if time.monotonic() > deadline:
                raise SystemExit(f"The service was not ready after {READY_SECONDS:.0f} s; see {self._folder}.")
            time.sleep(POLL_SECONDS)

    def _ready(self) -> bool:
        serving, working = self._parts[: len(self._probed)], self._parts[len(self._probed) :]
        ready = all(part.says("worker ready") for part in working)
        return ready and all(map(self._is_serving, self._probed[: len(serving)]))

    def _is_serving(self, probed: str) -> bool:
        """Whether the API that answers there serves, with Redis and the replica."""
        try:
            answer = self._http.get(probed)
        except httpx.TransportError:
            return False
        # Without a worker the API calls itself degraded, and a worker's first beat takes some seconds.
        wanted = {"redis": "ok", "replica": "none" if self.replica is None else "ok"}
        return answer.status_code == httpx.codes.OK and wanted.items() <= answer.json().items()

    def processes(self) -> dict[int, str]:
        """Process id -> name of each part that runs, and of Postgres' processes by the part they serve."""
        found = {part.process.pid: part.name for part in self._parts if part.process is not None}
        if self.redis.pid is not None:
            found[self.redis.pid] = "redis"
        if self.replica is not None and self.replica.pid is not None:
            with contextlib.suppress(psutil.NoSuchProcess):
                of_replica = psutil.Process(self.replica.pid).children()
                found |= dict.fromkeys([self.replica.pid, *(child.pid for child in of_replica)], "the replica")
        if self.postgres.pid is None:
            return found
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(self.postgres.pid).children()
            found |= dict.fromkeys([self.postgres.pid, *(child.pid for child in children)], "postgres itself")
        with contextlib.suppress(psycopg.OperationalError), _connect(self.postgres) as connection:
            served = connection.execute(NAMED_BACKENDS).fetchall()
            found |= {pid: f"postgres for {name}" for pid, name in served if pid in found}
        return found

    def wait_for_replica(self) -> None:
        """Wait until the replica has what the primary has now."""
        if self.replica is None:
            return
        with _connect(self.postgres) as primary, _connect(self.replica) as replica:
            (end,) = primary.execute("SELECT pg_current_wal_flush_lsn()").fetchall()
            while not replica.execute("SELECT pg_last_wal_replay_lsn() >= %s", end).fetchall()[0][0]:
                time.sleep(POLL_SECONDS)

    def faults(self) -> Mapping[str, Callable[[random.Random], None]]:
        """What can be killed, and how; whatever it is, it runs again afterwards."""
        ways: dict[str, Callable[[random.Random], None]] = {
            part.name: partial(self._kill_part, part) for part in self._parts
        }
        if (replica := self.replica) is not None:
            ways["replica"] = lambda _: self._kill_server(replica)
        return ways | {
            "redis": lambda _: self._kill_server(self.redis),
            "postgres backend": self._kill_backend,
            "postmaster": lambda _: self._kill_server(self.postgres),
        }

    def _kill_part(self, part: Part, _: random.Random) -> None:
        part.kill()
        if part.process is not None:
            part.process.wait()
        part.start()

    def _kill_server(self, server: EmbeddedPostgres | EmbeddedRedis) -> None:
        if server.pid is not None:
            os.kill(server.pid, signal.SIGKILL)
        while server.is_alive():
            time.sleep(POLL_SECONDS / 10)
        server.start()

    def _kill_backend(self, draw: random.Random) -> None:
        with _connect(self.postgres) as connection:
            pids = sorted(pid for (pid,) in connection.execute(BACKENDS).fetchall())
        with contextlib.suppress(ProcessLookupError):
            os.kill(draw.choice(pids), signal.SIGKILL)
        time.sleep(POLL_SECONDS)  # the postmaster ends and begins all the others


def disturb(
    service: Service, every: float, draw: random.Random, over: Callable[[], bool], calm: float = 0.0
) -> list[Fault]:
    """Kill something about every so many seconds until it is over, and nothing for ``calm`` seconds before."""
    faults: list[Fault] = []
    ways = service.faults()
    bag: list[str] = []
    due = time.time() + calm + every * draw.uniform(0.5, 1.5)
    while not over():
        if not every or time.time() < due:
            time.sleep(POLL_SECONDS)
            continue
        if not bag:  # each once before any comes again
            bag = sorted(ways)
            draw.shuffle(bag)
        what = bag.pop()
        began = time.time()
        ways[what](draw)
        service.wait_until_ready()
        faults.append(Fault(what, began, time.time()))
        due = max(due + every * draw.uniform(0.5, 1.5), time.time())
    return faults


def _connect(server: EmbeddedPostgres) -> psycopg.Connection[Any]:
    # Its own: one that the pools of this process keep would be drawn as a victim as well.
    return psycopg.connect(server.url.replace("+psycopg", ""), autocommit=True)
