"""Login of people at the identity provider, for the search page and the console."""

import html
import re
from urllib.parse import parse_qsl, urlencode

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from engram.api.client_address import client_address
from engram.api.dependencies import App
from engram.api.login_cookies import MOST_BYTES, LoginCookies
from engram.api.request_principal import holder
from engram.api.work_threads import WorkThreads
from engram.composition.container import Application
from engram.context.errors import EngramError, NotFoundError, UnauthorizedError
from engram.providers.openid_login import LoginAttempt
from engram.services.auth.login import LoginService

ATTEMPT_SECONDS = 600
MOST_ADDRESS_CHARACTERS = 2_000
START = "/search"
RETURN_ADDRESS = re.compile(r"/(search)?([?#][!-~]*)?")
"""Where a login may lead back to: the two pages."""
_THREADS = WorkThreads("engram-logins", 4)

router = APIRouter(include_in_schema=False)


@router.get("/login")
async def get_login(request: Request, app: App, to: str = START) -> Response:
    """Lead to the identity provider."""
    try:
        begin = _find_login(app).begin
        address, attempt = await _THREADS.do(holder(request.scope), begin, _redirect_uri(request, app))
    except EngramError as error:
        return _show_failure(error, app)
    response = RedirectResponse(address, status_code=303)
    attempt_fields = {
        "state": attempt.state,
        "nonce": attempt.nonce,
        "verifier": attempt.verifier,
        "to": _check_address(to),
    }
    cookies = LoginCookies(app.settings.url)
    cookies.set(response, cookies.attempt, urlencode(attempt_fields), ATTEMPT_SECONDS)
    return response


@router.get("/login/callback")
async def get_login_callback(request: Request, app: App) -> Response:
    """Take the answer of the identity provider, and lead back to the page."""
    cookies = LoginCookies(app.settings.url)
    attempt_fields = dict(parse_qsl(request.cookies.get(cookies.attempt, "")))
    to = _check_address(attempt_fields.pop("to", START))
    failed, caller = request.app.state.failed_attempts, client_address(request.scope) or "unknown"
    try:
        failed.check(caller)
        attempt = (
            LoginAttempt(**attempt_fields) if attempt_fields.keys() == {"state", "nonce", "verifier"} else None
        )
        finish, answer = _find_login(app).finish, dict(request.query_params)
        login = await _THREADS.do(holder(request.scope), finish, attempt, answer, _redirect_uri(request, app))
        if len(login.token) > MOST_BYTES:
            raise UnauthorizedError(
                f"The identity provider's token has {len(login.token)} characters, and browsers keep {MOST_BYTES}. "
                "The provider has to list fewer groups in it."
            )
        response: Response = RedirectResponse(to, status_code=303)
        cookies.set(response, cookies.session, login.token, login.seconds)
    except EngramError as error:
        if isinstance(error, UnauthorizedError):  # each may have cost the provider a request
            failed.count(caller)
        response = _show_failure(error, app)
    cookies.set(response, cookies.attempt, "", 0)
    return response


@router.delete("/login")
async def delete_login(app: App) -> Response:
    """Log out here; the person stays logged in at the identity provider."""
    response = Response(status_code=204)
    cookies = LoginCookies(app.settings.url)
    cookies.set(response, cookies.session, "", 0)
    return response


def _find_login(app: Application) -> LoginService:
    if app.auth.login is None:
        raise NotFoundError("No identity provider is configured to log in at.")
    return app.auth.login


def _redirect_uri(request: Request, app: Application) -> str:
    """The callback's address as the browser reaches it. Its host is one that the service goes by."""
    base = app.settings.url or f"{request.url.scheme}://{request.url.netloc}{app.settings.root_path}"
    return f"{base.rstrip('/')}/login/callback"


def _check_address(to: str) -> str:
    """Path that the login leads back to: one of the pages, whatever was asked for."""
    is_page = len(to) <= MOST_ADDRESS_CHARACTERS and RETURN_ADDRESS.fullmatch(to)
    return to if is_page else START


def _show_failure(error: EngramError, app: Application) -> HTMLResponse:
    """Show a person why the login failed."""
    text = f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Login failed</title></head>
<body><main>
<h1>Login failed</h1>
<p>{html.escape(error.public_detail)}</p>
<p><a href="{app.settings.root_path}{START}">Try again</a></p>
</main></body>
</html>
"""
    return HTMLResponse(text, status_code=error.status)
