"""Places at work that tenants share fairly, and within a tenant its access keys."""

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from engram.telemetry import metrics

ACTIVE_SECONDS = 5.0
"""How long after its last request a tenant counts as active, so that others leave its share free."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Principal whose request takes a slot: a tenant, and a key's name, or an address where nobody is known."""

    tenant: str
    key: str


@dataclass(slots=True)
class _Queue:
    """Waiting requests of one tenant: key -> its requests in order."""

    by_key: dict[str, deque["asyncio.Future[bool]"]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.by_key.values()))


class FairSlots:
    """A number of slots, and a bounded queue before them. For one event loop.

    Each of the tenants that were active in the last seconds may hold an equal share of the slots, and one more
    share stays free, so a tenant that has asked little finds a slot at once and few others at work. A tenant that
    is alone may hold all. A free slot goes to the tenant that holds least, then to whichever was served longest
    ago; within the tenant, to its keys by the same rule. If the queue is full, the newest request of the tenant
    that waits with most gives way to another's.
    """

    def __init__(
        self,
        slots: int,
        waiting: int | None = None,
        wait_seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the slots.

        Args:
            slots: 0 for any number.
            waiting: requests that may wait; None for any number.
            wait_seconds: how long one waits; None for as long as it takes.
        """
        self._slots = slots
        self._waiting = waiting
        self._wait_seconds = wait_seconds
        self._clock = clock
        self._slot_counts: Counter[str] = Counter()
        self._key_slot_counts: Counter[Holder] = Counter()
        self._queues: dict[str, _Queue] = {}
        self._last_active: dict[str, float] = {}
        self._last_turns: dict[str | Holder, int] = {}
        self._turn = 0
        self._timer: asyncio.TimerHandle | None = None

    async def take(self, holder: Holder) -> bool:
        """Wait for a slot; False if too many wait already, or it took too long."""
        self._last_active[holder.tenant] = self._clock()
        if not self._slots or (not self._queues.get(holder.tenant) and self._has_room(holder.tenant)):
            self._grant(holder)
            return True
        if not self._enters_queue(holder.tenant):
            return False
        mine: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        queue = self._queues.setdefault(holder.tenant, _Queue())
        queue.by_key.setdefault(holder.key, deque()).append(mine)
        self._look_again()
        metrics.REQUESTS_WAITING.inc()
        try:
            return await asyncio.wait_for(asyncio.shield(mine), self._wait_seconds)
        except TimeoutError:
            return self._leave(holder, mine)
        except BaseException:
            if self._leave(holder, mine):
                self.release(holder)
            raise
        finally:
            metrics.REQUESTS_WAITING.dec()

    def release(self, holder: Holder) -> None:
        """Give the slot back, to whoever is next."""
        self._slot_counts[holder.tenant] -= 1
        self._key_slot_counts[holder] -= 1
        if not self._slot_counts[holder.tenant]:
            del self._slot_counts[holder.tenant]
        if not self._key_slot_counts[holder]:
            del self._key_slot_counts[holder]
        self._last_active[holder.tenant] = self._clock()
        self._dispatch()

    def _share(self) -> int:
        """Places that one tenant may hold."""
        since = self._clock() - ACTIVE_SECONDS
        for tenant in [tenant for tenant, moment in self._last_active.items() if moment < since]:
            if not self._slot_counts[tenant] and tenant not in self._queues:
                del self._last_active[tenant]
                self._last_turns.pop(tenant, None)
                for key in [one for one in self._last_turns if isinstance(one, Holder) and one.tenant == tenant]:
                    del self._last_turns[key]
        active = len(self._last_active)
        return self._slots if active <= 1 else max(1, self._slots // (active + 1))

    def _has_room(self, tenant: str) -> bool:
        return self._slot_counts.total() < self._slots and self._slot_counts[tenant] < self._share()

    def _grant(self, holder: Holder) -> None:
        self._slot_counts[holder.tenant] += 1
        self._key_slot_counts[holder] += 1
        self._turn += 1
        self._last_turns[holder.tenant] = self._last_turns[holder] = self._turn

    def _dispatch(self) -> None:
        """Grant free slots to those that wait, as far as shares allow."""
        while self._slot_counts.total() < self._slots:
            share = self._share()
            ready = [tenant for tenant in self._queues if self._slot_counts[tenant] < share]
            if not ready:
                break
            tenant = min(ready, key=lambda one: (self._slot_counts[one], self._last_turns.get(one, 0)))
            queue = self._queues[tenant]
            holder = min(
                (Holder(tenant, key) for key in queue.by_key),
                key=lambda one: (self._key_slot_counts[one], self._last_turns.get(one, 0)),
            )
            waiting = queue.by_key[holder.key].popleft()
            self._tidy(holder)
            self._grant(holder)
            waiting.set_result(True)
        self._look_again()

    def _look_again(self) -> None:
        """Grant again once a tenant may have ceased to be active, as shares then grow."""
        if self._timer is None and self._queues:
            self._timer = asyncio.get_running_loop().call_later(ACTIVE_SECONDS, self._update_shares)

    def _update_shares(self) -> None:
        self._timer = None
        self._dispatch()

    def _enters_queue(self, tenant: str) -> bool:
        """Whether one more request of the tenant may wait, after the newest of a longer queue gave way."""
        if self._waiting is None or sum(map(len, self._queues.values())) < self._waiting:
            return True
        if not self._queues:
            return False
        longest = max(self._queues, key=lambda one: len(self._queues[one]))
        if len(self._queues[longest]) <= len(self._queues.get(tenant, ())) + 1:
            return False
        by_key = self._queues[longest].by_key
        holder = Holder(longest, max(by_key, key=lambda key: len(by_key[key])))
        by_key[holder.key].pop().set_result(False)
        self._tidy(holder)
        return True

    def _leave(self, holder: Holder, mine: "asyncio.Future[bool]") -> bool:
        """Leave the queue; True if a slot came at the last moment, which is then held."""
        if mine.done():
            return not mine.cancelled() and mine.result()
        self._queues[holder.tenant].by_key[holder.key].remove(mine)
        self._tidy(holder)
        mine.cancel()
        return False

    def _tidy(self, holder: Holder) -> None:
        """Forget queues that are empty."""
        queue = self._queues[holder.tenant]
        if not queue.by_key[holder.key]:
            del queue.by_key[holder.key]
        if not queue.by_key:
            del self._queues[holder.tenant]
