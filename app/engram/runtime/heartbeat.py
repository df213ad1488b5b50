"""A worker's sign of life: in Redis, for whoever asks the service, and in a file, for its own machine."""

import os
import threading
import time
from pathlib import Path

import structlog

from engram.context.errors import ConfigurationError, UnavailableError
from engram.storage.wake_stream import BEAT_SECONDS, BEATS_LAST_SECONDS, WakeStream

log = structlog.get_logger(__name__)

STUCK_SECONDS = 600.0
"""How long one turn of a loop may take; a worker with one that takes longer is no longer said to live."""


class Heartbeat:
    """Beats while the worker's loops go round."""

    def __init__(self, stream: WakeStream, file: Path | None) -> None:
        self._stream = stream
        self._file = file
        self._turned: dict[str, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heart", daemon=True)

    def turn(self, loop: str) -> None:
        """The loop begins another round."""
        self._turned[loop] = time.monotonic()

    def start(self) -> None:
        """Beat from now on, until ``stop``."""
        self._thread.start()

    def stop(self) -> None:
        """Beat no more, and say so."""
        self._over.set()
        self._thread.join()
        self._stream.leave()
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    def list_stuck_loops(self) -> list[str]:
        """Loops whose round has lasted too long."""
        since = time.monotonic() - STUCK_SECONDS
        return [loop for loop, turned in list(self._turned.items()) if turned < since]

    def beat(self) -> None:
        """One beat, unless a loop is stuck."""
        if stuck := self.list_stuck_loops():
            log.error("loops are stuck", loops=stuck)
            return
        self._stream.beat()
        if self._file is not None:
            try:
                touch(self._file)
            except OSError as error:
                log.warning("beat not written", file=str(self._file), error=str(error))

    def _run(self) -> None:
        while True:
            self.beat()
            if self._over.wait(BEAT_SECONDS):
                return


def touch(file: Path) -> None:
    """Set the file's time to now; what is a link is not followed."""
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        os.utime(opened)
    finally:
        os.close(opened)


def check(file: Path | None) -> None:
    """See to it that the worker that beats in this file lives.

    Raises:
        ConfigurationError: no file is configured.
        UnavailableError: it has not beaten lately.
    """
    if file is None:
        raise ConfigurationError(
            "engram worker --check needs ENGRAM_WORKER_HEARTBEAT_FILE to be set, as the worker does."
        )
    try:
        age = time.time() - file.stat().st_mtime
    except FileNotFoundError as error:
        raise UnavailableError(f"The worker has not beaten yet, or has ended: there is no {file}.") from error
    if age > BEATS_LAST_SECONDS:
        raise UnavailableError(f"The worker last beat {age:.0f} s ago.")
