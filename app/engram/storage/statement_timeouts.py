"""Statements that are cancelled when the request they are for has taken its time."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from psycopg import Error
from sqlalchemy import Connection

from engram.context import deadline

POLL_SECONDS = 0.1
CANCEL_SECONDS = 5


class _Watch:
    """One thread that cancels what runs on connections beyond their ends; it lives while there are any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: dict[int, tuple[float, Any]] = {}
        self._thread: threading.Thread | None = None

    def add(self, ends: float, driver: Any) -> None:
        with self._lock:
            self._watched[id(driver)] = (ends, driver)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="deadline", daemon=True)
                self._thread.start()

    def remove(self, driver: Any) -> None:
        with self._lock:  # which is held while a cancellation is sent
            self._watched.pop(id(driver), None)

    def _run(self) -> None:
        idle_since = time.monotonic()
        while True:
            time.sleep(POLL_SECONDS)
            with self._lock:
                now = time.monotonic()
                if self._watched:
                    idle_since = now
                elif now - idle_since > 1.0:
                    self._thread = None
                    return
                for ends, driver in self._watched.values():
                    if now >= ends:
                        with suppress(Error):  # the server is gone, as the statement itself will say
                            driver.cancel_safe(timeout=CANCEL_SECONDS)


_watch = _Watch()


@contextmanager
def limit_statements(connection: Connection) -> Iterator[None]:
    """Cancel what runs on the connection once the deadline of this context is over, if it has one.

    A connection that this befell is not used again: a cancellation may arrive after what it was meant for.

    Raises:
        DeadlineError: it is over.
    """
    ends = deadline.end()
    if ends is None:
        yield
        return
    deadline.check()
    driver = connection.connection.driver_connection
    _watch.add(ends, driver)
    try:
        yield
    finally:
        _watch.remove(driver)
        if deadline.is_over():
            connection.invalidate()
