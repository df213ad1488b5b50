"""Places are shared by tenant first, then by key."""

import asyncio

import pytest

from engram.api.fair_places import ACTIVE_SECONDS, FairPlaces, Holder

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


async def ask(places: FairPlaces, *holders: Holder) -> "list[asyncio.Task[bool]]":
    """Ask for a place for each holder, one after the other."""
    tasks = []
    for holder in holders:
        tasks.append(asyncio.create_task(places.take(holder)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    return tasks


def list_granted(tasks: "list[asyncio.Task[bool]]") -> list[bool]:
    return [task.done() and task.result() for task in tasks]


@pytest.mark.anyio
async def test_a_tenant_that_is_alone_holds_all_places() -> None:
    assert list_granted(await ask(FairPlaces(4), A, A, A, A, A)) == [True] * 4 + [False]


@pytest.mark.anyio
async def test_an_active_tenant_finds_its_share_free() -> None:
    clock = Clock()
    places = FairPlaces(6, clock=clock)
    await ask(places, B)
    places.release(B)
    flood = await ask(places, A, A, A, A)
    assert list_granted(flood) == [True, True, False, False], "a third is kept for whoever comes next"
    assert list_granted(await ask(places, B, B)) == [True, True]


@pytest.mark.anyio
async def test_the_share_of_a_tenant_that_left_goes_to_the_others() -> None:
    clock = Clock()
    places = FairPlaces(6, clock=clock)
    await ask(places, B)
    places.release(B)
    flood = await ask(places, A, A, A, A, A)
    assert list_granted(flood) == [True, True, False, False, False]
    clock.now += ACTIVE_SECONDS + 1
    places.release(A)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert list_granted(flood) == [True, True, True, True, True]


@pytest.mark.anyio
async def test_a_free_place_goes_to_the_tenant_that_holds_least() -> None:
    places = FairPlaces(2)
    flood = await ask(places, A, A, A, A)
    waiting = await ask(places, B)
    assert list_granted(waiting) == [False]
    places.release(A)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (list_granted(flood), list_granted(waiting)) == ([True, True, False, False], [True])


@pytest.mark.anyio
async def test_within_a_tenant_keys_take_turns() -> None:
    places, other = FairPlaces(1), Holder("a", "two")
    first, second, third, fourth = await ask(places, A, A, A, other)
    places.release(A)
    await asyncio.sleep(0.01)
    assert list_granted([first, second, third, fourth]) == [True, False, False, True]


@pytest.mark.anyio
async def test_full_queue_drops_the_last_waiter_of_the_busiest_caller() -> None:
    places = FairPlaces(1, waiting=3)
    _, *waiting = await ask(places, A, A, A, A)
    assert list_granted(await ask(places, A)) == [False]
    (theirs,) = await ask(places, B)
    await asyncio.sleep(0.01)
    assert [task.done() for task in waiting] == [False, False, True]
    assert waiting[2].result() is False
    assert not theirs.done()
    places.release(A)
    await asyncio.sleep(0.01)
    assert list_granted([theirs]) == [True]


@pytest.mark.anyio
async def test_cancelled_waiter_takes_no_place() -> None:
    places = FairPlaces(1)
    _, second, third = await ask(places, A, A, B)
    second.cancel()
    await asyncio.sleep(0)
    places.release(A)
    await asyncio.sleep(0.01)
    assert list_granted([third]) == [True]
    places.release(B)
    assert list_granted(await ask(places, A)) == [True]


@pytest.mark.anyio
async def test_waiting_ends_after_the_configured_time() -> None:
    places = FairPlaces(1, wait_seconds=0.05)
    _, second = await ask(places, A, A)
    assert await second is False
    places.release(A)
    assert list_granted(await ask(places, B)) == [True]
