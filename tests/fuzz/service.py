"""``engram up`` in a folder of its own, as it is shipped."""

import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import httpx

from tests.support.environment import inherit_environment
from tests.support.forks import ROOT
from tests.support.processes import free_port

READY_SECONDS = 300.0
STOP_SECONDS = 60.0
SETTINGS = {
    "ENGRAM_LOG_LEVEL": "WARNING",
    "ENGRAM_LOG_FORMAT": "json",
}


class Service:
    """The running service; use it as a context manager."""

    def __init__(self, folder: Path, more: Mapping[str, str] | None = None) -> None:
        """``more``: environment variables beside ``SETTINGS``."""
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.folder = folder
        self._log = folder / "engram.log"
        own = {"ENGRAM_PORT": str(self.port), "ENGRAM_DATA_DIR": str(folder / "data"), "PYTHONPATH": str(ROOT)}
        self.env = inherit_environment() | SETTINGS | own | dict(more or {})

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "engram.cli", "up"], cwd=self.folder, env=self.env, stdout=log, stderr=log
            )
        deadline = time.monotonic() + READY_SECONDS
        while not self._ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise RuntimeError(f"the service did not start:\n{self._log.read_text()}")
            time.sleep(0.2)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", trust_env=False, timeout=5).status_code == 200
        except httpx.HTTPError:
            return False

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def errors(self) -> list[str]:
        """Lines of its log that speak of what nobody expected."""
        lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        return [line for line in lines if '"level": "error"' in line or line.startswith("Traceback")]

    def verify(self) -> str | None:
        """What ``engram verify`` has against what was learned; None if nothing."""
        command = [sys.executable, "-m", "engram.cli", "verify"]
        done = subprocess.run(command, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False)
        return None if done.returncode == 0 else f"{done.stdout[-1_000:]}{done.stderr[-1_000:]}"
