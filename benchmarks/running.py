"""A whole Engram of its own, whose parts can be killed and are started again."""

import contextlib
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
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
            self.process = spawn(self.command, death_signal=signal.SIGTERM, env=self.env, output=output.fileno())

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
    """All processes of one Engram."""

    def __init__(self, folder: Path, workers: int = 2, python: str = sys.executable) -> None:
        self._commands = [("api", "serve"), *((f"worker-{at}", "worker") for at in range(1, workers + 1))]
        self.settings = Settings(
            _env_file=None, data_dir=folder, port=_free_port(), database_url=None, redis_url=None
        )
        self.postgres = EmbeddedPostgres(
            folder / "postgres", self.settings.local_user, memory_mb=self.settings.local_memory_mb
        )
        self.redis = EmbeddedRedis(folder / "redis")
        self._folder = folder
        self._python = python
        self._http = httpx.Client(base_url=self.url, timeout=5.0, trust_env=False)
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
        env = dict(os.environ) | {
            "DATABASE_URL": self.postgres.url,
            "REDIS_URL": self.redis.url,
            "ENGRAM_DATA_DIR": str(self._folder),
            "ENGRAM_HOST": "127.0.0.1",
            "ENGRAM_PORT": str(self.settings.port),
        }
        for name, command in self._commands:
            program = (self._python, "-P", "-m", "engram.cli", command)
            self._parts.append(Part(name, program, env | {"PGAPPNAME": name}, log=self._folder / f"{name}.log"))
            self._parts[-1].start()
            self.wait_until_ready()  # one after the other: the first one exports the encoder
        return self

    def __exit__(self, *_: object) -> None:
        for part in self._parts:
            part.terminate()
        for part in self._parts:
            part.wait(time.monotonic() + 20)
        self._http.close()
        self.redis.stop()
        self.postgres.stop()

    def wait_until_ready(self) -> None:
        """Wait until every part answers."""
        deadline = time.monotonic() + READY_SECONDS
        while not self._ready():
            if time.monotonic() > deadline:
                raise SystemExit(f"The service was not ready after {READY_SECONDS:.0f} s; see {self._folder}.")
            time.sleep(POLL_SECONDS)

    def _ready(self) -> bool:
        try:
            answer = self._http.get("/readyz")
        except httpx.TransportError:
            return False
        # Without a worker the API calls itself degraded, and a worker's first beat takes some seconds.
        answers = answer.status_code == httpx.codes.OK and answer.json()["redis"] == "ok"
        return answers and all(part.says("worker ready") for part in self._parts[1:])

    def processes(self) -> dict[int, str]:
        """Process id -> name of each part that runs, and of Postgres' processes by the part they serve."""
        found = {part.process.pid: part.name for part in self._parts if part.process is not None}
        if self.redis.pid is not None:
            found[self.redis.pid] = "redis"
        if self.postgres.pid is None:
            return found
        with contextlib.suppress(psutil.NoSuchProcess):
            children = psutil.Process(self.postgres.pid).children()
            found |= dict.fromkeys([self.postgres.pid, *(child.pid for child in children)], "postgres itself")
        with contextlib.suppress(psycopg.OperationalError), self._connection() as connection:
            served = connection.execute(NAMED_BACKENDS).fetchall()
            found |= {pid: f"postgres for {name}" for pid, name in served if pid in found}
        return found

    def _connection(self) -> psycopg.Connection[Any]:
        # Its own: one that the pools of this process keep would be drawn as a victim as well.
        return psycopg.connect(self.postgres.url.replace("+psycopg", ""), autocommit=True)

    def faults(self) -> Mapping[str, Callable[[random.Random], None]]:
        """What can be killed, and how; whatever it is, it runs again afterwards."""
        ways: dict[str, Callable[[random.Random], None]] = {
            part.name: partial(self._kill_part, part) for part in self._parts
        }
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
        with self._connection() as connection:
            pids = sorted(pid for (pid,) in connection.execute(BACKENDS).fetchall())
        with contextlib.suppress(ProcessLookupError):
            os.kill(draw.choice(pids), signal.SIGKILL)
        time.sleep(POLL_SECONDS)  # the postmaster ends and begins all the others


def disturb(service: Service, every: float, draw: random.Random, over: Callable[[], bool]) -> list[Fault]:
    """Kill something every so many seconds until it is over."""
    faults: list[Fault] = []
    ways = service.faults()
    bag: list[str] = []
    due = time.time() + every
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
        due = max(due + every, time.time())
    return faults


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port
