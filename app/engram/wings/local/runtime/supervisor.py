"""Child processes that are watched, started again when they end, and ended for good."""

import contextlib
import fcntl
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from types import FrameType
from typing import Protocol

from engram.config.data_folder import ADDRESS_FILE
from engram.context.errors import ConfigurationError, EngramError
from engram.wings.local.servers.child_process import spawn
from engram.wings.local.servers.data_files import open_private

BACKOFF_SECONDS = 0.5
BACKOFF_LIMIT_SECONDS = 8.0
RAPID_ENDS_ALLOWED = 5
RAPID_WINDOW_SECONDS = 60.0


class EndedError(Exception):
    """The run ends with this exit code; the message says why in one line."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Runnable(Protocol):
    def start(self) -> object: ...
    def is_alive(self) -> bool: ...
    def kill(self) -> None: ...


@dataclass
class Child:
    """One of Engram's own processes."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    process: "Popen[bytes] | None" = None
    keep_open: Sequence[int] = ()

    def start(self) -> None:
        self.process = spawn(self.command, death_signal=signal.SIGTERM, env=self.env, keep_open=self.keep_open)

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    @property
    def exit_code(self) -> int:
        """Exit code of the ended process in the shell's convention: 128 + n after signal n."""
        status = self.process.returncode if self.process and self.process.returncode is not None else 1
        return 128 - status if status < 0 else status

    def terminate(self) -> None:
        if self.process is not None:
            self.process.terminate()

    def kill(self) -> None:
        """Kill the process and whatever it started."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)

    def wait(self, deadline: float) -> None:
        """Wait until it ended; what still runs at ``deadline`` (monotonic seconds) is killed."""
        if self.process is not None:
            with contextlib.suppress(TimeoutExpired):
                self.process.wait(max(0.0, deadline - time.monotonic()))
            self.kill()
            self.process.wait()


@dataclass
class RestartGuard:
    """Starts a runnable again when it ends: later each time, and a limited number of times."""

    name: str
    runnable: Runnable
    ends: deque[float] = field(default_factory=deque)
    due: float | None = None

    def check(self) -> None:
        """Start it again if it ended and its time has come.

        Raises EndedError when it ended more than RAPID_ENDS_ALLOWED times within RAPID_WINDOW_SECONDS.
        """
        now = time.monotonic()
        if self.due is None:
            if not self.runnable.is_alive():
                self._schedule(now, self._describe_end())
        elif now >= self.due:
            self.due = None
            try:
                self.runnable.start()
            except EngramError as error:
                self._schedule(now, f"did not start: {error.detail}")

    def _describe_end(self) -> str:
        if isinstance(self.runnable, Child):
            return f"ended with exit code {self.runnable.exit_code}"
        return "ended"

    def _schedule(self, now: float, reason: str) -> None:
        self.runnable.kill()
        self.ends.append(now)
        while self.ends[0] < now - RAPID_WINDOW_SECONDS:
            self.ends.popleft()
        if len(self.ends) > RAPID_ENDS_ALLOWED:
            raise EndedError(1, f"{self.name} {reason}, {len(self.ends)} times in a row; giving up.")
        delay = min(BACKOFF_SECONDS * 2 ** (len(self.ends) - 1), BACKOFF_LIMIT_SECONDS)
        self.due = now + delay
        say(f"{self.name} {reason}; starting it again in {delay:g} s.")


@contextlib.contextmanager
def handle_signals(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Let ``handler`` take SIGINT, SIGTERM and SIGHUP, except a SIGHUP that nohup turned off."""
    numbers = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        if number is not signal.SIGHUP or before[number] is not signal.SIG_IGN:
            signal.signal(number, handler)
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, signal.SIG_DFL if previous is None else previous)


@contextlib.contextmanager
def hold_data_dir(data_dir: Path) -> Iterator[None]:
    """Hold the data directory for this run. Raises ConfigurationError if another run holds it."""
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        lock = open_private(data_dir / "up.lock", os.O_RDWR)
    except OSError as error:
        raise ConfigurationError(f"The data directory {data_dir} cannot be used: {error}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"Another `engram up` uses {data_dir}; stop it or set ENGRAM_DATA_DIR."
            raise ConfigurationError(message) from None
        yield
    finally:
        os.close(lock)


@contextlib.contextmanager
def publish_address(data_dir: Path, address: str) -> Iterator[None]:
    """Write down where this run answers, so that commands of the same folder find it, until it ends."""
    written = data_dir / ADDRESS_FILE
    written.write_text(f"{address}\n", encoding="utf-8")
    try:
        yield
    finally:
        written.unlink(missing_ok=True)


def say(line: str) -> None:
    """Tell the person at the terminal."""
    with contextlib.suppress(OSError):  # the terminal may be gone
        sys.stderr.write(f"engram: {line}\n")
        sys.stderr.flush()
