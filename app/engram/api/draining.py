"""Answers to requests that a shutdown cuts off."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engram.api import problems
from engram.context.errors import UnavailableError


class DrainMiddleware:
    """Answers 503 to requests that are cancelled, as those are that outlive the grace of a process told to end."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        answered = False

        async def send_noted(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        except asyncio.CancelledError:
            if answered or scope["type"] != "http":
                raise
            error = UnavailableError("This process is ending and could not finish the request in time.")
            await problems.problem_response(error, scope)(scope, receive, send)
