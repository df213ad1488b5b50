"""Ends of work: its deadline, the moment when its client leaves, the moment when its job is stopped.

A request sets the first two when it comes in. They are heeded wherever the request asks the database, and between
two batches of the encoder. A job is stopped by a function that its runner gives.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from engram.context.errors import AbandonedError, DeadlineError

_ends: ContextVar[float | None] = ContextVar("deadline", default=None)
_client_left: ContextVar[Callable[[], bool] | None] = ContextVar("client_left", default=None)
_stopped: ContextVar[Callable[[], bool] | None] = ContextVar("job_stopped", default=None)


class WorkStoppedError(Exception):
    """The job that the work belongs to was cancelled, taken over or told to stop."""


def begin(seconds: float) -> None:
    """Give this context, and threads that it hands work to, so many seconds from now."""
    _ends.set(time.monotonic() + seconds)


def watch_client(has_left: Callable[[], bool]) -> None:
    """Give up what is done in this context from now on once ``has_left`` says that the client has left."""
    _client_left.set(has_left)


@contextmanager
def abandon_when(stopped: Callable[[], bool]) -> Iterator[None]:
    """Give up long computations within the block once ``stopped`` says so; see ``check_work``."""
    before = _stopped.set(stopped)
    try:
        yield
    finally:
        _stopped.reset(before)


def end() -> float | None:
    """Return the end of the deadline in monotonic seconds; None if there is none."""
    return _ends.get()


def is_over() -> bool:
    """Whether there was a deadline and it has passed."""
    ends = _ends.get()
    return ends is not None and time.monotonic() >= ends


def check() -> None:
    """Go on only if there is time left and the client waits.

    Raises:
        DeadlineError: there is no time left.
        AbandonedError: the client has left.
    """
    if is_over():
        raise DeadlineError("The request took longer than ENGRAM_QUERY_TIMEOUT_SECONDS allows, and was given up.")
    has_left = _client_left.get()
    if has_left is not None and has_left():
        raise AbandonedError("The client closed its connection before the answer.")


def check_work() -> None:
    """Go on with a long computation only if somebody still wants its result.

    Raises:
        DeadlineError, AbandonedError: as for ``check``.
        WorkStoppedError: the job was stopped.
    """
    check()
    stopped = _stopped.get()
    if stopped is not None and stopped():
        raise WorkStoppedError
