"""Calls that are given up in time, whatever the connection does that they wait for."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_ResultT = TypeVar("_ResultT")


def call_within(seconds: float, call: Callable[[], _ResultT]) -> _ResultT:
    """Call in a thread of its own, and wait for at most so many seconds.

    HTTP libraries bound the wait for each piece alone: headers may come a byte at a time.

    Raises:
        TimeoutError: it has not ended; its thread goes on and ends with the process.
    """
    return begin_call(call).result(timeout=seconds)


def begin_call(call: Callable[[], _ResultT]) -> "Future[_ResultT]":
    """Call in a thread of its own, and return what it will give."""
    outcome: Future[_ResultT] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            outcome.set_exception(error)

    threading.Thread(target=run, name="bounded-call", daemon=True).start()
    return outcome
