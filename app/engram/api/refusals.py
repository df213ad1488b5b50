"""Refusals of requests that are too many: 429 where their sender asks too much, 503 where all together do."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from starlette.types import Receive, Scope, Send

from engram.api import problems
from engram.context.errors import EngramError, TooManyRequestsError, UnavailableError
from engram.telemetry import metrics

DELAY_SECONDS = 1.0
"""How long a 429 is held back. A client that comes again at once would otherwise be refused hundreds of times a
second, and a refusal costs nearly as much as a small request."""
BUSY_SECONDS = 2
"""When to come again after a refusal that does not know better."""
Limit = Literal["authentication", "concurrency", "rate", "queue"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not served.

    Attributes:
        error: what its sender is told.
        limit: the limit that it passed.
        headers: further headers of the answer.
    """

    error: EngramError
    limit: Limit
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusals:
    """Refuses requests, and holds a 429 back for a moment.

    A held refusal keeps a connection and nothing else. Only so many are held, so that connections are left for
    others; further ones go out at once.
    """

    def __init__(self, most_held: int, delay_seconds: float = DELAY_SECONDS) -> None:
        self._places = asyncio.Semaphore(most_held)
        self._delay_seconds = delay_seconds

    async def refuse(self, refusal: Refusal, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the error's problem document, later if its sender asked too much."""
        error = refusal.error
        metrics.REQUESTS_REFUSED.labels(refusal.limit).inc()
        if isinstance(error, TooManyRequestsError) and not self._places.locked():
            async with self._places:
                await asyncio.sleep(self._delay_seconds)
        answer = problems.problem_response(error, scope)
        if isinstance(error, UnavailableError):
            answer.headers["Retry-After"] = str(BUSY_SECONDS)
        answer.headers.update(refusal.headers)
        await answer(scope, receive, send)
