"""Whether the client of a request still waits for the answer."""

import asyncio
import threading

from starlette.types import ASGIApp, Message, Receive, Scope, Send

CLIENT_LEFT = "engram.client_left"
"""Where a function stands in a request's ASGI scope that says whether its client has left."""


class ClientPresence:
    """Tells the work of a request that its client has left, once the body has arrived whole."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client_left = threading.Event()
        watch: asyncio.Task[Message] | None = None

        async def receive_next() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                client_left.set()
            return message

        async def receive_watched() -> Message:
            nonlocal watch
            if watch is not None:
                return await asyncio.shield(watch)
            message = await receive_next()
            if message["type"] == "http.request" and not message.get("more_body", False):
                watch = asyncio.create_task(receive_next())
            return message

        scope[CLIENT_LEFT] = client_left.is_set
        try:
            await self._app(scope, receive_watched, send)
        finally:
            if watch is not None:
                watch.cancel()
