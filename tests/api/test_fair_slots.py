"""Places are shared by tenant first, then by key."""

import asyncio

import pytest

from engram.api.fair_slots import ACTIVE_SECONDS, FairSlots, Holder

A, B = Holder("a", "one"), Holder("b", "one")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


async def ask(slots: FairSlots, *holders: Holder) -> "list[asyncio.Task[bool]]":
    """Ask for a slot for each holder, one after the other."""
    tasks = []
    for holder in holders:
        tasks.append(asyncio.create_task(slots.take(holder)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    return tasks


def list_granted(tasks: "list[asyncio.Task[bool]]") -> list[bool]:
    return [task.done() and task.result() for task in tasks]


@pytest.mark.anyio
async def test_a_tenant_that_is_alone_holds_all_slots() -> None:
    assert list_granted(await ask(FairSlots(4), A, A, A, A, A)) == [True] * 4 + [False]


@pytest.mark.anyio
async def test_an_active_tenant_finds_its_share_free() -> None:
    clock = Clock()
    slots = FairSlots(6, clock=clock)
    await ask(slots, B)
    slots.release(B)
    flood = await ask(slots, A, A, A, A)
    assert list_granted(flood) == [True, True, False, False], "a third is kept for whoever comes next"
    assert list_granted(await ask(slots, B, B)) == [True, True]


@pytest.mark.anyio
async def test_the_share_of_a_tenant_that_left_goes_to_the_others() -> None:
    clock = Clock()
    slots = FairSlots(6, clock=clock)
    await ask(slots, B)
    slots.release(B)
    flood = await ask(slots, A, A, A, A, A)
    assert list_granted(flood) == [True, True, False, False, False]
    clock.now += ACTIVE_SECONDS + 1
    slots.release(A)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert list_granted(flood) == [True, True, True, True, True]


@pytest.mark.anyio
async def test_a_free_place_goes_to_the_tenant_that_holds_least() -> None:
    slots = FairSlots(2)
    flood = await ask(slots, A, A, A, A)
    waiting = await ask(slots, B)
    assert list_granted(waiting) == [False]
    slots.release(A)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (list_granted(flood), list_granted(waiting)) == ([True, True, False, False], [True])


@pytest.mark.anyio
async def test_within_a_tenant_keys_take_turns() -> None:
    slots, other = FairSlots(1), Holder("a", "two")
    first, second, third, fourth = await ask(slots, A, A, A, other)
    slots.release(A)
    await asyncio.sleep(0.01)
    assert list_granted([first, second, third, fourth]) == [True, False, False, True]


@pytest.mark.anyio
async def test_full_queue_drops_the_last_waiter_of_the_busiest_caller() -> None:
    slots = FairSlots(1, waiting=3)
    _, *waiting = await ask(slots, A, A, A, A)
    assert list_granted(await ask(slots, A)) == [False]
    (theirs,) = await ask(slots, B)
    await asyncio.sleep(0.01)
    assert [task.done() for task in waiting] == [False, False, True]
    assert waiting[2].result() is False
    assert not theirs.done()
    slots.release(A)
    await asyncio.sleep(0.01)
    assert list_granted([theirs]) == [True]


@pytest.mark.anyio
async def test_cancelled_waiter_takes_no_place() -> None:
    slots = FairSlots(1)
    _, second, third = await ask(slots, A, A, B)
    second.cancel()
    await asyncio.sleep(0)
    slots.release(A)
    await asyncio.sleep(0.01)
    assert list_granted([third]) == [True]
    slots.release(B)
    assert list_granted(await ask(slots, A)) == [True]


@pytest.mark.anyio
async def test_waiting_ends_after_the_configured_time() -> None:
    slots = FairSlots(1, wait_seconds=0.05)
    _, second = await ask(slots, A, A)
    assert await second is False
    slots.release(A)
    assert list_granted(await ask(slots, B)) == [True]
