"""Every request is somebody's before anything of it is read."""

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from engram.api import console_files, problems
from engram.context import tenancy
from engram.context.errors import EngramError, UnauthorizedError
from engram.services.auth.authentication import Authentication
from engram.services.auth.scope import LOCAL

PUBLIC = ("/healthz", "/readyz", "/openapi.json", "/docs")
"""Paths that need no key: they tell nothing of anybody's."""
PRINCIPAL = "engram.principal"
"""Where a request's principal stands in its ASGI scope."""


def is_public(path: str) -> bool:
    """Whether whoever asks there need not be known."""
    return path in PUBLIC or path.startswith("/docs/") or console_files.is_console(path)


class Authenticated:
    """Has each request be a principal's, or refuses it: before its body is read."""

    def __init__(self, app: ASGIApp, authentication: Authentication | None) -> None:
        self._app = app
        self._authentication = authentication

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or self._authentication is None or is_public(scope["path"]):
            scope[PRINCIPAL] = LOCAL
            await self._app(scope, receive, send)
            return
        authorizations = Headers(scope=scope).getlist("authorization")
        header = authorizations[0] if authorizations else None
        try:
            if len(authorizations) > 1:
                raise UnauthorizedError("Send one Authorization header.")
            principal = self._authentication.quickly(header)
            if principal is None:
                principal = await run_in_threadpool(self._authentication.principal, header)
        except EngramError as error:
            await problems.problem_response(error, scope)(scope, receive, send)
            return
        scope[PRINCIPAL] = principal
        with tenancy.restricted_to(principal.tenant):
            await self._app(scope, receive, send)
