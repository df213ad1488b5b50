"""Calls that are given up in time, whatever the connection does that they wait for."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

_ResultT = TypeVar("_ResultT")


def call_within(seconds: float, call: Callable[[], _ResultT]) -> _ResultT:
    """Call in a thread of its own, and wait for at most so many seconds.

    HTTP libraries bound the wait for each piece alone: headers may come a byte at a time.

    Raises:
        TimeoutError: it has not ended; its thread goes on and ends with the process.
    """
    return _begin_call(call).result(timeout=seconds)


class SharedCall(Generic[_ResultT]):
    """A call that all who ask meanwhile wait for together, in one thread."""

    def __init__(self, call: Callable[[], _ResultT]) -> None:
        self._call = call
        self._lock = threading.Lock()
        self._outcome: Future[_ResultT] | None = None

    def ask(self, seconds: float) -> _ResultT:
        """Return what it gives; as ``call_within``."""
        with self._lock:
            if self._outcome is None or self._outcome.done():
                self._outcome = _begin_call(self._call)
            outcome = self._outcome
        return outcome.result(timeout=seconds)


def _begin_call(call: Callable[[], _ResultT]) -> "Future[_ResultT]":
    outcome: Future[_ResultT] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            outcome.set_exception(error)

    threading.Thread(target=run, name="bounded-call", daemon=True).start()
    return outcome
