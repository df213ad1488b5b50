"""Limits on how much is asked at once and how often, by principal, or by address where nobody is known.

A request is refused before its body is read, with Retry-After. A slot is held only from the end of the body on, so
that whoever sends slowly keeps none. Tenants share the slots fairly, and within a tenant its keys do.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engram.api import console_files
from engram.api.fair_slots import FairSlots
from engram.api.refusals import BUSY_SECONDS, Refusal, Refusals
from engram.api.request_principal import asker, holder
from engram.api.work_threads import WorkThreads
from engram.context.errors import TooManyRequestsError, UnavailableError
from engram.services.auth.rate_limits import Rates
from engram.services.auth.scope import LOCAL
from engram.telemetry import metrics

UNLIMITED_PATHS = frozenset({"/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"})
STREAMED_PATHS = frozenset({"/passages"})
"""Paths whose requests take no slot: they wait for their client for most of their time."""
ASKING_AT_ONCE = 8
"""Threads that ask Redis."""
_ASKING = WorkThreads("engram-rates", ASKING_AT_ONCE)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Requests in hand in this process.

    Attributes:
        each: of one principal; 0: any number.
        working: of all together; 0: any number.
        waiting: that wait for one of these to end.
        wait_seconds: for how long.
    """

    each: int
    working: int
    waiting: int
    wait_seconds: float


class RequestRate:
    """Counts what a request takes of its client's rate limit.

    Attributes:
        grant: result of taking last.
    """

    def __init__(self, rates: Rates, client_key: str) -> None:
        self._rates = rates
        self._client_key = client_key
        self.grant = rates.take(client_key)

    def take(self, count: int) -> None:
        """Count further requests that this one stands for.

        Raises:
            TooManyRequestsError: the client has sent too many for that.
        """
        self.grant = self._rates.take(self._client_key, count)
        if not self.grant.allowed:
            raise self.build_error()

    def build_error(self) -> TooManyRequestsError:
        """Make the error of a refusal."""
        message = f"At most {self._rates.rate:g} requests a second are answered."
        return TooManyRequestsError(message, self.grant.retry_seconds)

    @property
    def headers(self) -> Mapping[str, str]:
        """By the IETF's draft on RateLimit header fields: the bucket as quota, the time it fills in as window."""
        rates, grant = self._rates, self.grant
        return {
            "ratelimit-policy": f'"requests";q={int(rates.burst)};w={math.ceil(rates.burst / rates.rate)}',
            "ratelimit": f'"requests";r={grant.remaining};t={math.ceil(grant.full_seconds)}',
        }


REQUEST_RATE = "engram.rate"
"""Where a request's ``RequestRate`` stands in its ASGI scope; absent if requests are not counted."""


class Throttle:
    """Serves requests within limits."""

    def __init__(self, app: ASGIApp, bounds: Bounds, rates: Rates | None, refusals: Refusals) -> None:
        """``rates``: None if nobody is asked how often."""
        self._app = app
        self._refusals = refusals
        self._bounds = bounds
        self._rates = rates
        self._slots = FairSlots(bounds.working, bounds.waiting, bounds.wait_seconds)
        self._in_hand: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or scope["path"] in UNLIMITED_PATHS or console_files.is_console(scope["path"]):
            await self._app(scope, receive, send)
            return
        refusal = await self._limit_concurrency(_name(scope), scope, receive, send)
        if refusal is not None:  # it may be held back, and is in hand no more
            await self._refusals.refuse(refusal, scope, receive, send)

    async def _limit_concurrency(self, who: str, scope: Scope, receive: Receive, send: Send) -> Refusal | None:
        """Serve a request within all limits; if one is passed, return the refusal, and send nothing."""
        if self._bounds.each and self._in_hand[who] >= self._bounds.each:
            message = f"At most {self._bounds.each} requests of yours may be in hand at once."
            return Refusal(TooManyRequestsError(message, BUSY_SECONDS), "concurrency")
        self._in_hand[who] += 1
        try:
            return await self._limit_rate(who, scope, receive, send)
        finally:
            self._in_hand[who] -= 1
            if not self._in_hand[who]:
                del self._in_hand[who]

    async def _limit_rate(self, client_key: str, scope: Scope, receive: Receive, send: Send) -> Refusal | None:
        if self._rates is None:
            return await self._take_slot(scope, receive, send)
        rate = await _ASKING.do(holder(scope), RequestRate, self._rates, client_key)
        if not rate.grant.allowed:
            return Refusal(rate.build_error(), "rate", rate.headers)
        scope[REQUEST_RATE] = rate

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in rate.headers.items():
                    headers[name] = value
            await send(message)

        refusal = await self._take_slot(scope, receive, send_marked)
        return refusal and replace(refusal, headers=rate.headers)

    async def _take_slot(self, scope: Scope, receive: Receive, send: Send) -> Refusal | None:
        """Serve a request in a slot; if the queue for slots is full, return the refusal, and send nothing."""
        if scope["path"] in STREAMED_PATHS or not self._bounds.working:
            await self._app(scope, receive, send)
            return None
        has_slot, own = False, holder(scope)

        async def receive_whole() -> Message:
            nonlocal has_slot
            message = await receive()
            if not has_slot and message["type"] == "http.request" and not message.get("more_body", False):
                if not await self._slots.take(own):
                    raise _build_busy_error()  # which FastAPI lets through its reading of the body
                has_slot = True
            return message

        try:
            if _has_body(scope):
                await self._app(scope, receive_whole, send)
                return None
            has_slot = await self._slots.take(own)
            if not has_slot:
                return Refusal(UnavailableError(_BUSY), "queue")
            await self._app(scope, receive, send)
            return None
        finally:
            if has_slot:
                self._slots.release(own)


_BUSY = "There are too many requests; this one was not begun."


def _build_busy_error() -> HTTPException:
    metrics.REQUESTS_REFUSED.labels("queue").inc()
    return HTTPException(UnavailableError.status, _BUSY, headers={"Retry-After": str(BUSY_SECONDS)})


def _name(scope: Scope) -> str:
    """Return the name that the request's limits count under."""
    own = holder(scope)
    return own.key if asker(scope) == LOCAL else f"{own.tenant}/{own.key}"


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
