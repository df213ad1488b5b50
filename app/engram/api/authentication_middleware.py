"""Every request is somebody's before anything of it is read."""

from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from engram.api import console_files, problems
from engram.api.client_address import client_address
from engram.api.fair_slots import Holder
from engram.api.login_cookies import LoginCookies
from engram.api.person_header import PersonHeader
from engram.api.refusals import Refusal, Refusals
from engram.api.work_threads import WorkThreads
from engram.context import tenancy
from engram.context.errors import EngramError, TooManyRequestsError, UnauthorizedError
from engram.services.auth.authentication import Authentication
from engram.services.auth.failed_attempts import FailedAttempts
from engram.services.auth.scope import LOCAL, Principal

PUBLIC = ("/healthz", "/readyz", "/openapi.json", "/docs", "/login", "/login/callback")
"""Paths that need no key: they tell nothing of anybody's."""
LOOKUP_THREADS = 4
"""Threads that look keys up. They are nobody else's, so no flood of other work keeps a key from being known."""
_THREADS = WorkThreads("engram-authentication", LOOKUP_THREADS)
PRINCIPAL = "engram.principal"
"""Where a request's principal stands in its ASGI scope."""
LOGIN = "engram.login"
"""Where the token of a login stands there, if the request came with its cookie."""


def is_public(path: str) -> bool:
    """Whether whoever asks there need not be known."""
    return path in PUBLIC or path.startswith("/docs/") or console_files.is_console(path)


class AuthenticationMiddleware:
    """Finds the principal of each request, or refuses the request before its body is read."""

    def __init__(
        self,
        app: ASGIApp,
        authentication: Authentication | None,
        login_authentication: Authentication | None,
        failed_attempts: FailedAttempts,
        refusals: Refusals,
        login_cookies: LoginCookies,
        person_header: PersonHeader | None,
    ) -> None:
        self._app = app
        self._refusals = refusals
        self._authentication = authentication
        self._login_cookies = login_cookies
        self._person_header = person_header
        self._login_authentication = login_authentication
        self._failed = failed_attempts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http" or self._authentication is None or is_public(scope["path"]):
            scope[PRINCIPAL] = LOCAL
            await self._app(scope, receive, send)
            return
        try:
            principal = await self._find_principal(scope, self._authentication)
            if self._person_header is not None:
                principal = self._person_header.choose_principal(scope, principal)
        except TooManyRequestsError as error:
            await self._refusals.refuse(Refusal(error, "authentication"), scope, receive, send)
            return
        except EngramError as error:
            await problems.problem_response(error, scope)(scope, receive, send)
            return
        scope[PRINCIPAL] = principal
        with tenancy.restrict_to(principal.tenant, principal.readers):
            await self._app(scope, receive, send)

    async def _find_principal(self, scope: Scope, authentication: Authentication) -> Principal:
        """Return whose the request is.

        Raises:
            UnauthorizedError, UnavailableError: as ``Authentication.find_principal``.
            TooManyRequestsError: its address failed too often, and brings nothing that was accepted before.
        """
        headers = Headers(scope=scope)
        authorizations = headers.getlist("authorization")
        logged_in = self._login_authentication
        if not authorizations and logged_in and (token := self._login_cookies.read_session(headers)) is not None:
            authentication, authorizations = logged_in, [f"Bearer {token}"]
            scope[LOGIN] = token
        address = client_address(scope) or "unknown"
        try:
            cached_principal = self._find_known_principal(authentication, authorizations, address)
            if cached_principal is not None:
                return cached_principal
            return await _THREADS.do(Holder(address, ""), authentication.find_principal, authorizations[0])
        except UnauthorizedError:
            if authorizations:  # who brings nothing guesses nothing, as a page that is opened before the login
                self._failed.count(address)
            raise

    def _find_known_principal(
        self, authentication: Authentication, authorizations: Sequence[str], address: str
    ) -> Principal | None:
        """Return the principal if it is known, unless the address failed too often and brings something new."""
        try:
            header = _read_single_header(authorizations)
            cached_principal = authentication.find_cached_principal(header)
            if cached_principal is None and not authentication.has_accepted(header):
                self._failed.check(address)
        except UnauthorizedError:
            if authorizations:
                self._failed.check(address)
            raise
        return cached_principal


def _read_single_header(authorizations: Sequence[str]) -> str | None:
    if len(authorizations) > 1:
        raise UnauthorizedError("Send one Authorization header.")
    return authorizations[0] if authorizations else None
