"""A bound on request bodies, enforced while they arrive."""

import re

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engram.api import problems
from engram.context.errors import PayloadTooLargeError

MAX_BODY_BYTES = 4 * 1024 * 1024


class BodyLimit:
    """Answers 413 to bodies past the limit; paths that ``unlimited`` matches look after themselves."""

    def __init__(self, app: ASGIApp, unlimited: re.Pattern[str]) -> None:
        self._app = app
        self._unlimited = unlimited

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or self._unlimited.fullmatch(scope["path"]):
            await self._app(scope, receive, send)
            return
        received = 0

        async def receive_bounded() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > MAX_BODY_BYTES:
                # FastAPI lets this pass through its reading of the body, and turns any other exception into a 400.
                raise HTTPException(PayloadTooLargeError.status, f"Bodies end at {MAX_BODY_BYTES} bytes.")
            return message

        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > MAX_BODY_BYTES:
            error = PayloadTooLargeError(f"Bodies end at {MAX_BODY_BYTES} bytes.")
            await problems.problem_response(error, scope)(scope, receive, send)
            return
        await self._app(scope, receive_bounded, send)
