"""Requests about collections that live in another database, sent on to the API that serves it.

The routing table is what this database keeps of such collections: a name, and the address of that API. A caller
keeps its address and its credentials, which both services have to know.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import httpx
import structlog
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message

from engram.api.authentication_middleware import LOGIN
from engram.api.login_cookies import LoginCookies
from engram.api.request_telemetry import HEADER as REQUEST_ID
from engram.context.errors import CollectionMovedError, MalformedRequestError, NotFoundError, UnavailableError
from engram.telemetry.request_id import get_current_id

log = structlog.get_logger(__name__)

MARK = "x-engram-forwarded"
"""Of a request that another API sent on. It is sent on no further, so none goes in a circle."""
TIMEOUT = httpx.Timeout(600.0, connect=5.0)
"""As long as the other API may take, which bounds its requests itself."""
MOST_KEPT_BYTES = 256 * 1024
"""Of a body that is not JSON: a form names its collection before its file, other bodies do not name it."""
DESCRIPTION_TIMEOUT = httpx.Timeout(5.0)
"""A list of collections waits no longer for each API."""
_PASSED_ON = (
    "accept",
    "accept-encoding",
    "accept-language",
    "authorization",
    "content-encoding",
    "content-length",
    "content-type",
    "idempotency-key",
    "last-event-id",
    "traceparent",
    "tracestate",
)
_NOT_FOR_CALLER = frozenset((HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND))
_OF_A_CONNECTION = frozenset(
    (
        "connection",
        "date",
        "keep-alive",
        "server",
        "set-cookie",
        "transfer-encoding",
        "upgrade",
        REQUEST_ID,
    )
)
"""Headers of an answer that are not another's to repeat."""


class KeptBody(Request):
    """A request that can be sent on after its body was read.

    JSON may name the collection anywhere, and is bounded, so it is kept.
    """

    def __init__(self, request: Request) -> None:
        super().__init__(request.scope, self._keep_next)
        self._receive_next = request.receive
        is_json = request.headers.get("content-type", "").startswith("application/json")
        self._room = math.inf if is_json else MOST_KEPT_BYTES
        self._kept: list[bytes] = []
        self._has_more = True

    @property
    def is_whole(self) -> bool:
        """Whether all is kept that was read of the body."""
        return self._room >= 0

    async def _keep_next(self) -> Message:
        message = await self._receive_next()
        if message["type"] == "http.request":
            self._has_more = message.get("more_body", False)
            self._room -= len(message.get("body", b""))
            if self.is_whole:
                self._kept.append(message.get("body", b""))
            else:
                self._kept.clear()
        return message

    async def stream_again(self) -> AsyncIterator[bytes]:
        """Yield what arrived, and then the rest as it arrives, which is not kept.

        Raises:
            MalformedRequestError: the client left before the body was whole.
        """
        for piece in self._kept:
            yield piece
        while self._has_more:
            message = await self._receive_next()
            if message["type"] == "http.disconnect":
                raise MalformedRequestError("The body did not arrive whole.")
            self._has_more = message.get("more_body", False)
            yield message.get("body", b"")


class Forwarding:
    """Sends requests on to other APIs; one for each process."""

    def __init__(self, person_header: str | None) -> None:
        """``person_header``: who is named in it is believed here by address, as no other API can."""
        self._person_header = person_header
        self._client: httpx.AsyncClient | None = None

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def follow(self, request: KeptBody, error: CollectionMovedError) -> Response:
        """Answer a request about a collection that moved.

        Raises:
            CollectionMovedError: nobody said where, or the request cannot be sent on.
            UnavailableError: the other API is out of reach.
        """
        address = error.extra.get("moved_to")
        if address is None or not request.is_whole or not self._can_send(request):
            raise error
        return _pass_on(await self._repeat(request, address))

    async def look_elsewhere(self, request: KeptBody, error: NotFoundError) -> Response:
        """Answer a request by an id that this database does not know, by the first other API that knows it.

        Raises:
            NotFoundError: none does.
            UnavailableError: one of them is out of reach.
        """
        for address in error.elsewhere if self._can_send(request) else ():
            answer = await self._repeat(request, address)
            if answer.status_code != HTTPStatus.NOT_FOUND:
                return _pass_on(answer)
            await answer.aclose()
        raise error

    async def describe(self, request: Request, routes: Mapping[str, str]) -> dict[str, Any]:
        """Ask other APIs to describe collections, on behalf of whoever makes the request.

        Args:
            routes: name -> address.

        Returns:
            Name -> what ``GET /collections/{name}`` says; None: its API is out of reach. Left out are collections
            that the caller may not read, and all of them if another API asks, which knows its own.
        """
        if not self._can_send(request):
            return {}
        answers = await asyncio.gather(*(self._describe(request, *route) for route in routes.items()))
        return {
            name: description
            for name, (status, description) in zip(routes, answers, strict=True)
            if status not in _NOT_FOR_CALLER
        }

    async def _describe(self, request: Request, name: str, address: str) -> tuple[int, Any]:
        try:
            target = f"/collections/{quote(name)}"
            answer = await self._send(request, address, "GET", target, timeout=DESCRIPTION_TIMEOUT)
            await answer.aread()
        except (UnavailableError, httpx.HTTPError):
            return HTTPStatus.SERVICE_UNAVAILABLE, None
        return answer.status_code, answer.json() if answer.is_success else None

    def _can_send(self, request: Request) -> bool:
        named = self._person_header is not None and self._person_header in request.headers
        return not named and MARK not in request.headers

    async def _repeat(self, request: KeptBody, address: str) -> httpx.Response:
        """Send a request on as it is."""
        query = f"?{request.url.query}" if request.url.query else ""
        target = request.scope["raw_path"].decode("ascii") + query
        has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
        body = request.stream_again() if has_body else None
        return await self._send(request, address, request.method, target, body)

    async def _send(
        self,
        request: Request,
        address: str,
        method: str,
        target: str,
        body: AsyncIterator[bytes] | None = None,
        timeout: httpx.Timeout = TIMEOUT,
    ) -> httpx.Response:
        if self._client is None:
            self._client = httpx.AsyncClient(trust_env=False)
        headers = _choose_headers(request)
        if body is None:
            headers.pop("content-length", None)
        sent = self._client.build_request(
            method, f"{address}{target}", headers=headers, content=body, timeout=timeout
        )
        try:
            return await self._client.send(sent, stream=True)
        except httpx.HTTPError as failure:
            log.warning("an API to forward to is out of reach", address=address, error=repr(failure))
            raise UnavailableError("The API that serves the collection is out of reach.") from failure


def _choose_headers(request: Request) -> dict[str, str]:
    headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
    if (token := request.scope.get(LOGIN)) is not None:
        headers |= LoginCookies.build_headers(token)
    return headers | {MARK: "1", REQUEST_ID: get_current_id() or ""}


def _pass_on(answer: httpx.Response) -> Response:
    """Return another API's answer as it arrives."""
    headers = {name: value for name, value in answer.headers.items() if name not in _OF_A_CONNECTION}
    return StreamingResponse(
        answer.aiter_raw(),
        status_code=answer.status_code,
        headers=headers,
        background=BackgroundTask(answer.aclose),
    )
