"""Engram's processes as they are shipped, on servers of the test's choice."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import cycle
from pathlib import Path
from typing import Any, Self

import httpx
import psutil

from tests.support.environment import inherit_environment
from tests.support.forked_tests import PROCESS
from tests.support.forks import ROOT, ForkedProcess

PATIENCE_SECONDS = 120.0
PLAIN_CLIENT = httpx.Client(trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))
"""For requests by themselves: to make a client, which reads the certificates of this machine, takes 25 ms."""
KILLED = Path(__file__).with_name("killed.py")


def eventually(condition: Callable[[], Any], what: str = "it") -> None:
    """Wait until the condition holds."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come about"
        time.sleep(0.02)


def _list_ports() -> Iterator[int]:
    first = 10_000 + 1_000 * int(os.environ.get(PROCESS, "0"))
    yield from cycle(first + (os.getpid() + step) % 1_000 for step in range(1_000))


_ports = _list_ports()


def free_port() -> int:
    """A port on which nobody listens, and that no one else takes before it is listened on.

    It is below those that the kernel hands out to whoever connects, and each process of a test run has a thousand
    of its own.
    """
    while True:
        port = next(_ports)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Process:
    """One ``engram`` command; its output goes to a file. Use it as a context manager."""

    def __init__(
        self,
        command: str,
        folder: Path,
        env: Mapping[str, str],
        *killed: str,
        arguments: Sequence[str] = (),
        python: Path | None = None,
    ) -> None:
        """Start it.

        Args:
            killed: the function at which it kills itself, see ``killed.py``.
            arguments: of the command.
            python: of an environment with another revision of Engram, whose command is run.
        """
        program = [str(KILLED), command, *killed] if killed else ["-m", "engram.cli", command, *arguments]
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = folder / f"{command}-{self.port}.log"
        env = inherit_environment() | {"ENGRAM_PORT": str(self.port)} | dict(env)
        with self._log.open("wb") as log:
            self._process: ForkedProcess | subprocess.Popen[bytes]
            if python is None:
                env["PYTHONPATH"] = str(ROOT)
                self._process = ForkedProcess(program, cwd=folder, env=env, stdout=log, stderr=log)
            else:
                self._process = subprocess.Popen(
                    [str(python), *program], cwd=folder, env=env, stdout=log, stderr=log
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    @property
    def output(self) -> str:
        """What it has said so far."""
        return self._log.read_text()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def wait_for_line(self, line: str) -> Self:
        """Wait until it says this."""
        eventually(lambda: line in self.output or not self.running, line)
        assert line in self.output, self.output
        return self

    def ready(self) -> Self:
        """Wait until it can work: a worker says so, an API is asked."""
        if self._log.name.startswith("worker"):
            return self.wait_for_line("worker ready")
        eventually(lambda: self._serves() or not self.running, "readiness")
        assert self.running, self.output
        return self

    def _serves(self) -> bool:
        try:
            return PLAIN_CLIENT.get(f"{self.url}/readyz", timeout=PATIENCE_SECONDS).status_code == 200
        except httpx.HTTPError:
            return False

    def terminate(self) -> None:
        """Tell it to end."""
        self._process.terminate()

    def kill(self, *, with_children: bool = False) -> None:
        """End it as ``kill -9`` does.

        Args:
            with_children: its own programs end with it, as when a container is killed. Else they are orphans.
        """
        children = psutil.Process(self._process.pid).children(recursive=True) if with_children else ()
        self._process.kill()
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        self._process.wait()

    def wait_for_end(self) -> int:
        """Wait for its end; the exit code, -n after signal n."""
        return self._process.wait(PATIENCE_SECONDS)
