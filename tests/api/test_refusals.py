"""Refusals of what is too much: held back for a moment, but only so many at once."""

import asyncio

import httpx
from starlette.types import Receive, Scope, Send

from engram.api.refusals import Refusal, Refusals
from engram.context.errors import EngramError, TooManyRequestsError, UnavailableError

TOO_MANY = TooManyRequestsError("At most 20 requests a second are answered.", 1.0)
BUSY = UnavailableError("There are too many requests.")


async def refuse_all(refusals: Refusals, *errors: EngramError) -> list[httpx.Response | None]:
    """Answers to requests that are refused with these errors, in their order; None if one is held back."""
    left = iter(errors)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await refusals.refuse(Refusal(next(left), "rate", {"ratelimit": "x"}), scope, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as http:
        tasks = [asyncio.create_task(http.get("/")) for _ in errors]
        done, held = await asyncio.wait(tasks, timeout=0.5)
        for task in held:
            task.cancel()
        return [task.result() if task in done else None for task in tasks]


def test_a_429_is_held_back_and_a_503_is_not() -> None:
    held, busy = asyncio.run(refuse_all(Refusals(10, delay_seconds=600.0), TOO_MANY, BUSY))
    assert held is None
    assert busy is not None
    assert (busy.status_code, busy.headers["retry-after"]) == (503, "2")


def test_only_so_many_are_held_and_further_ones_go_out_at_once() -> None:
    answers = asyncio.run(refuse_all(Refusals(2, delay_seconds=600.0), *[TOO_MANY] * 4))
    assert [answer and answer.status_code for answer in answers] == [None, None, 429, 429]


def test_a_held_refusal_is_sent_in_the_end_and_frees_its_place() -> None:
    async def refuse_twice() -> list[httpx.Response | None]:
        refusals = Refusals(1, delay_seconds=0.01)
        return [(await refuse_all(refusals, TOO_MANY))[0] for _ in range(2)]

    for answer in asyncio.run(refuse_twice()):
        assert answer is not None
        assert (answer.status_code, answer.headers["retry-after"], answer.headers["ratelimit"]) == (429, "1", "x")
