"""How long a request may take: set when it comes in, heeded wherever it asks the database."""

import time
from contextvars import ContextVar

from engram.context.errors import DeadlineError

_ends: ContextVar[float | None] = ContextVar("deadline", default=None)


def begin(seconds: float) -> None:
    """What is done in this context from now on, threads it is handed to included, has so long."""
    _ends.set(time.monotonic() + seconds)


def end() -> float | None:
    """When it is over (monotonic seconds); None if there is no deadline."""
    return _ends.get()


def is_over() -> bool:
    """Whether there was a deadline and it has passed."""
    ends = _ends.get()
    return ends is not None and time.monotonic() >= ends


def check() -> None:
    """Go on only if there is time left.

    Raises:
        DeadlineError: there is not.
    """
    if is_over():
        raise DeadlineError("The request took longer than ENGRAM_QUERY_TIMEOUT_SECONDS allows, and was given up.")
