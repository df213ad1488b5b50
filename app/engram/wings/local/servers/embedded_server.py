"""Shared parts of the embedded servers: one lock, one start, one stop.

The lock on ``server.lock`` is inherited by the server and all its processes and so is released by the kernel when
the last of them is gone, however it ended. Holding it is what "running" means here: there is no stale state to
clean up, and two servers never write the same data.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from types import TracebackType
from typing import ClassVar, Self

from engram.context.errors import ConfigurationError, UnavailableError
from engram.wings.local.servers.data_files import create_directory, open_private

_POLL_SECONDS = 0.03
_POLL_LIMIT_SECONDS = 0.5
_LOG_LIMIT_BYTES = 16 * 2**20
_LOG_TAIL_BYTES = 2000
_SOCKET_PATH_LIMIT_BYTES = 100  # the kernel allows 108 on Linux, 104 on macOS
_SOCKET_NAME_BYTES = len("/.s.PGSQL.5432.lock")
_PLAIN_PATH = re.compile(r"[A-Za-z0-9._/-]+")
# Not tempfile.gettempdir(): TMPDIR differs between shells, and all of them must find the same socket.
_SHORT_ROOT = Path("/tmp")  # noqa: S108 - the folder made in it is private and its owner is verified


class EmbeddedServer(ABC):
    """One server over one data directory, shared by every process that asks for it."""

    name: ClassVar[str]
    stop_signal: ClassVar[int]
    kill_signal: ClassVar[int]

    def __init__(
        self,
        data_directory: Path,
        *,
        timeout_seconds: float = 300.0,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        """``timeout_seconds`` bounds a start, crash recovery included; ``interrupted``, polled, ends it early."""
        self.data_directory = Path(os.path.abspath(data_directory)).resolve()
        self.timeout_seconds = timeout_seconds
        self.attached = False
        self._interrupted = interrupted
        self._process: Popen[bytes] | None = None

    @property
    @abstractmethod
    def url(self) -> str:
        """Address of the server, valid while it runs."""

    @property
    def pid(self) -> int | None:
        """Process id of the server, whoever started it; None if none is known to run."""
        if self._process is not None:
            return self._process.pid if self._process.poll() is None else None
        if not self.attached or not self.is_alive():
            return None
        with contextlib.suppress(OSError, ValueError):
            return int((self.data_directory / "server.lock").read_text())
        return None

    @property
    def log_path(self) -> Path:
        """File of the server's own messages."""
        return self.data_directory / f"{self.name.lower()}.log"

    @property
    def socket_directory(self) -> Path:
        """A private folder whose path is short and plain enough for a unix socket's name."""
        inside = self.data_directory / "run"
        length = len(os.fsencode(inside)) + _SOCKET_NAME_BYTES
        if length < _SOCKET_PATH_LIMIT_BYTES and _PLAIN_PATH.fullmatch(str(inside)):
            return inside
        digest = hashlib.sha256(os.fsencode(self.data_directory)).hexdigest()[:20]
        return _SHORT_ROOT / f"engram-{digest}"

    def start(self) -> str:
        """Attach to the server of this data directory, or start it, and return its URL once it answers.

        Raises ConfigurationError if it cannot run here as configured, UnavailableError if it did not come up in
        ``timeout_seconds`` or the start was interrupted.
        """
        deadline = time.monotonic() + self.timeout_seconds
        while self._process is not None and self._process.poll() is None:
            if self._answers():
                return self.url
            self._pause(deadline)
        self._process, self.attached = None, False
        try:
            create_directory(self.data_directory, mode=0o711 if os.geteuid() == 0 else 0o700)
            while (lock := self._try_lock()) is None:
                if self._answers():
                    self.attached = True
                    return self.url
                self._pause(deadline)
        except OSError as error:
            raise ConfigurationError(f"{self.name} cannot use {self.data_directory}: {error}") from error
        try:
            try:
                self._start(lock, deadline)
            finally:
                os.close(lock)
        except BaseException as error:
            self.stop(timeout_seconds=0)
            if isinstance(error, OSError):
                raise ConfigurationError(f"{self.name} cannot start: {error}") from error
            raise
        return self.url

    def is_alive(self) -> bool:
        """Whether the server that ``start`` attached to or started still runs; it may not answer yet."""
        if self._process is not None:
            return self._process.poll() is None
        if not self.attached:
            return False
        try:
            lock = self._try_lock()
        except OSError:
            return False
        if lock is not None:
            os.close(lock)
        return lock is None

    def stop(self, *, timeout_seconds: float = 60.0) -> None:
        """Shut the server down if this object started it; one that is slower than that is killed."""
        self.attached = False
        process, self._process = self._process, None
        if process is None:
            return
        signals = (self.stop_signal, timeout_seconds), (self.kill_signal, 5.0), (signal.SIGKILL, None)
        for number, patience in signals:
            process.send_signal(number)
            try:
                process.wait(patience)
                break
            except TimeoutExpired:
                continue
        with contextlib.suppress(OSError):
            self._remove_short_socket_directory()

    def _remove_short_socket_directory(self) -> None:
        if self.socket_directory.parent == _SHORT_ROOT and (lock := self._try_lock()) is not None:
            shutil.rmtree(self.socket_directory, ignore_errors=True)
            os.close(lock)

    def kill(self) -> None:
        """End the server at once if this object started it; ``stop`` then returns soon."""
        if self._process is not None:
            self._process.send_signal(self.kill_signal)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @abstractmethod
    def _launch(self, lock: int, log: int, deadline: float) -> "Popen[bytes]":
        """Prepare the data and start the server, which inherits ``lock`` and writes to ``log``."""

    @abstractmethod
    def _answers(self) -> bool:
        """Whether the server answers a real request."""

    def _start(self, lock: int, deadline: float) -> None:
        with contextlib.suppress(FileNotFoundError):
            if self.log_path.stat().st_size > _LOG_LIMIT_BYTES:
                self.log_path.replace(self.log_path.with_suffix(".log.1"))
        log = open_private(self.log_path, os.O_WRONLY | os.O_APPEND)
        try:
            self._process = self._launch(lock, log, deadline)
        finally:
            os.close(log)
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(self._process.pid).encode(), 0)
        self._wait_until_ready(deadline)

    def _wait_until_ready(self, deadline: float) -> None:
        while not self._is_ready():
            status = self._process.poll() if self._process else None
            if status is not None:
                raise UnavailableError(f"{self.name} ended with status {status} while starting.{self._log_tail()}")
            self._pause(deadline)

    def _is_ready(self) -> bool:
        """Whether a server that was just started answers; completes what it needs on its first start."""
        return self._answers()

    def _pause(self, deadline: float) -> None:
        if self._interrupted():
            raise UnavailableError(f"The start of {self.name} was interrupted.")
        if time.monotonic() > deadline:
            raise UnavailableError(
                f"{self.name} did not answer within {self.timeout_seconds:.0f} seconds.{self._log_tail()}"
            )
        # Ever less often: each attempt during a long recovery is a line in the server's log.
        elapsed = self.timeout_seconds - (deadline - time.monotonic())
        time.sleep(min(max(_POLL_SECONDS, elapsed / 10), _POLL_LIMIT_SECONDS))

    def _log_tail(self) -> str:
        try:
            content = self.log_path.read_bytes()[-_LOG_TAIL_BYTES:]
        except OSError:
            return ""
        lines = content.decode(errors="replace").strip().splitlines()[-12:]
        return "\n".join([f" The end of {self.log_path}:", *lines])

    def _try_lock(self) -> int | None:
        """The lock as a file descriptor, or None while the server, or somebody starting it, holds it."""
        lock = open_private(self.data_directory / "server.lock", os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        return lock
