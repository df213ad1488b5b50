"""Cookies of a login: the session, which is the provider's ID token, and an attempt that has begun.

No script reads them. A session counts only beside a header that no page of another site can send.
"""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import Response

PAGE_HEADER = "x-engram-page"
"""Sent by the pages with each request. No page of another site can: a browser asks the service first."""
MOST_BYTES = 4_000
"""Of a value. Browsers keep cookies of 4,096 bytes, the name included."""


class LoginCookies:
    """Names and attributes of the cookies. Those of an https address are no other host's (``__Host-``)."""

    def __init__(self, url: str | None) -> None:
        """``url``: the setting ENGRAM_URL."""
        self._is_secure = urlsplit(url or "").scheme == "https"
        prefix = "__Host-" if self._is_secure else ""
        self.session, self.attempt = f"{prefix}engram-session", f"{prefix}engram-login"

    def read_session(self, headers: Headers) -> str | None:
        """Read the token that a request of one of the pages brings, if it does."""
        if PAGE_HEADER not in headers:
            return None
        return cookie_parser(headers.get("cookie", "")).get(self.session) or None

    @staticmethod
    def build_headers(token: str) -> dict[str, str]:
        """Headers that bring a session to another service, whether or not its address is https."""
        names = [LoginCookies(url).session for url in ("https:", None)]
        return {PAGE_HEADER: "1", "cookie": "; ".join(f"{name}={token}" for name in names)}

    def set(self, response: Response, name: str, value: str, seconds: int) -> None:
        """Have the browser keep a cookie; for 0 ``seconds``, forget it."""
        response.set_cookie(name, value, max_age=seconds, secure=self._is_secure, httponly=True, samesite="lax")
