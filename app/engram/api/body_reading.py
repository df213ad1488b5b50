"""Reading bodies without holding up the event loop, on which every other request waits.

A body is parsed in one call that lets nobody else compute, and checked value by value in Python: of four megabytes
of zeros that is seconds. So what is large is read in threads, few of which may do so at once, and holds only so
many values.
"""

import json
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from engram.api.audit_recorder import is_act, record_requests
from engram.api.dependencies import find_need
from engram.api.forwarding import Forwarding, KeptBody
from engram.api.request_principal import holder
from engram.api.value_counts import has_more_values
from engram.api.work_threads import WorkThreads
from engram.context.errors import (
    CollectionMovedError,
    InvalidRequestError,
    MalformedRequestError,
    NotFoundError,
    PayloadTooLargeError,
)

LARGE_BYTES = 64 * 1024
"""Bodies up to here are read where they are: a thread would take longer to come by."""
READING_THREADS = 2
"""Threads that read large bodies, each of which may take the interpreter for as long as it parses."""
MAX_VALUES = 20_000
"""Values in a JSON body, keys not counted. The longest verdict has some 10,000."""

BODIES = WorkThreads("engram-bodies", READING_THREADS)
"""What reads them."""


async def receive_whole(request: Request, most: int, too_large: str) -> bytes:
    """Receive the body of a request.

    Raises:
        MalformedRequestError: it did not arrive whole.
        PayloadTooLargeError: it is longer than ``most`` bytes; ``too_large`` says so.
    """
    body = ArrivingBody(request, most, too_large)
    while body.has_more:
        await body.receive_more()
    return bytes(body.data)


class ArrivingBody:
    """The body of a request, received piece by piece.

    Attributes:
        data: what arrived.
        has_more: whether more follows.
    """

    def __init__(self, request: Request, most: int, too_large: str) -> None:
        """``too_large`` says that the body is longer than ``most`` bytes."""
        self._request = request
        self._most = most
        self._too_large = too_large
        self.data = bytearray()
        self.has_more = True

    async def receive_more(self) -> None:
        """Receive the next piece.

        Raises:
            MalformedRequestError: the client left before the body was whole.
            PayloadTooLargeError: it is too long.
        """
        message = await self._request.receive()
        if message["type"] == "http.disconnect":
            raise MalformedRequestError("The body did not arrive whole.")
        self.data += message.get("body", b"")
        self.has_more = message.get("more_body", False)
        if len(self.data) > self._most:
            raise PayloadTooLargeError(self._too_large)


class Body(KeptBody):
    """A request whose JSON is parsed in a thread if it is large, and which can be sent on."""

    async def json(self) -> Any:
        """The body.

        Raises:
            json.JSONDecodeError: it is not JSON.
            HTTPException: it holds too many values. FastAPI lets no other exception through.
        """
        body = await self.body()
        return await BODIES.do(holder(self.scope), _parse, body) if len(body) > LARGE_BYTES else _parse(body)


class Route(APIRoute):
    """A route that reads its body so, and sends on what another database holds."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the handler so that it gets the request as a ``Body``."""
        handle = super().get_route_handler()
        if is_act(self.methods, find_need(self.dependencies)):
            handle = record_requests(self.name, handle)

        async def read(request: Request) -> Response:
            body = Body(request)
            forwarding: Forwarding = request.app.state.forwarding
            try:
                return await handle(body)
            except CollectionMovedError as error:
                return await forwarding.follow(body, error)
            except NotFoundError as error:
                return await forwarding.look_elsewhere(body, error)

        return read


def _parse(body: bytes) -> Any:
    value = json.loads(body)
    if has_more_values(value, MAX_VALUES):
        raise HTTPException(InvalidRequestError.status, f"A body holds at most {MAX_VALUES} values.")
    return value
