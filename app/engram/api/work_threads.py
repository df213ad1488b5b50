"""Threads for one kind of work, of which only so much is done at once."""

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from engram.api.fair_slots import FairSlots, Holder

T = TypeVar("T")


class WorkSlots:
    """Slots for one kind of work in each event loop. Tenants share them fairly, see ``FairSlots``."""

    def __init__(self, name: str, at_once: int) -> None:
        """``name`` of the work, another one for each kind; ``at_once`` slots, 0: any number."""
        self._slots: RunVar[FairSlots] = RunVar(name)
        self._at_once = at_once

    @asynccontextmanager
    async def hold(self, holder: Holder) -> AsyncIterator[None]:
        """Wait for a slot, and hold it for the block."""
        try:
            slots = self._slots.get()
        except LookupError:
            slots = FairSlots(self._at_once)
            self._slots.set(slots)
        await slots.take(holder)
        try:
            yield
        finally:
            slots.release(holder)


class WorkThreads:
    """Does work beside the event loop, on which every other request waits.

    What is too much waits for a slot.
    """

    def __init__(self, name: str, at_once: int) -> None:
        """``name`` of the work, another one for each kind; ``at_once`` threads, 0: any number."""
        self._slots = WorkSlots(name, at_once)
        self._limiter: RunVar[CapacityLimiter] = RunVar(f"{name}-threads")

    async def do(self, holder: Holder, work: Callable[..., T], *arguments: Any) -> T:
        """Return what ``work`` returns; it is not begun for a caller that is cancelled while it waits."""
        try:
            limiter = self._limiter.get()
        except LookupError:
            limiter = CapacityLimiter(math.inf)
            self._limiter.set(limiter)
        async with self._slots.hold(holder):
            return await to_thread.run_sync(work, *arguments, limiter=limiter)


@dataclass(frozen=True, slots=True)
class RequestThreads:
    """The threads for the work of one request."""

    threads: WorkThreads
    holder: Holder

    async def do(self, work: Callable[..., T], *arguments: Any) -> T:
        """Return what ``work`` returns, done in this request's turn."""
        return await self.threads.do(self.holder, work, *arguments)
