"""Threads for one kind of work, of which only so much is done at once."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

T = TypeVar("T")


class WorkThreads:
    """Does work beside the event loop, on which every other request waits; what is too much waits in its turn."""

    def __init__(self, name: str, at_once: int) -> None:
        """``name`` of the work, another one for each kind; ``at_once`` threads, 0: any number."""
        self._limiters: RunVar[CapacityLimiter] = RunVar(name)
        self._at_once = at_once or math.inf

    async def do(self, work: Callable[..., T], *arguments: Any) -> T:
        """Return the result of ``work``; a request cancelled while it waits does no work."""
        try:
            limiter = self._limiters.get()
        except LookupError:
            limiter = CapacityLimiter(self._at_once)
            self._limiters.set(limiter)
        return await to_thread.run_sync(work, *arguments, limiter=limiter)
