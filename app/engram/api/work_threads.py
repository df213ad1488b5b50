"""Threads for one kind of work, of which only so much is done at once."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from engram.api.fair_slots import FairSlots, Holder

T = TypeVar("T")


class WorkThreads:
    """Does work beside the event loop, on which every other request waits.

    What is too much waits for a slot. Tenants share the slots fairly, see ``FairSlots``.
    """

    def __init__(self, name: str, at_once: int) -> None:
        """``name`` of the work, another one for each kind; ``at_once`` threads, 0: any number."""
        self._slots: RunVar[tuple[FairSlots, CapacityLimiter]] = RunVar(name)
        self._at_once = at_once

    async def do(self, holder: Holder, work: Callable[..., T], *arguments: Any) -> T:
        """Return what ``work`` returns; it is not begun for a caller that is cancelled while it waits."""
        try:
            slots, limiter = self._slots.get()
        except LookupError:
            slots, limiter = FairSlots(self._at_once), CapacityLimiter(math.inf)
            self._slots.set((slots, limiter))
        await slots.take(holder)
        try:
            return await to_thread.run_sync(work, *arguments, limiter=limiter)
        finally:
            slots.release(holder)


@dataclass(frozen=True, slots=True)
class RequestThreads:
    """The threads for the work of one request."""

    threads: WorkThreads
    holder: Holder

    async def do(self, work: Callable[..., T], *arguments: Any) -> T:
        """Return what ``work`` returns, done in this request's turn."""
        return await self.threads.do(self.holder, work, *arguments)
