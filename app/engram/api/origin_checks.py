"""Checks of browser requests: the hosts the service goes by, and the pages that may write to it.

A page anywhere can have its visitor's browser send requests to this machine. It can read nothing that CORS does not
let it, but a plain post is sent all the same; and by a name of its own that it turns to this machine's address (DNS
rebinding) it would be of the same origin. So names are checked, and writes of foreign pages are refused.
"""

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engram.api import console_files, documentation, problems
from engram.context.errors import ForeignOriginError, MisdirectedRequestError, UnsupportedMediaTypeError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
READING = frozenset({"GET", "HEAD", "OPTIONS"})
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
}
TYPES = frozenset(
    {
        "application/json",
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/octet-stream",
    }
)
"""Types that a browser sends for a foreign page only after asking; ``multipart/form-data`` it sends unasked."""
FORM = "multipart/form-data"
FORM_PATHS = frozenset({"/api/v1/files/"})
"""Paths that take forms, from clients that send a key besides."""


def parse_list(text: str) -> frozenset[str]:
    """The parts of a setting that are separated by commas, in lower case."""
    return frozenset(part.strip().lower().rstrip("/") for part in text.split(",") if part.strip())


@dataclass(frozen=True, slots=True)
class AllowedOrigins:
    """Names the service goes by, "*" for any, and foreign origins that may write."""

    hosts: frozenset[str]
    origins: frozenset[str]

    @classmethod
    def from_settings(cls, host: str, hosts: str, origins: str) -> "AllowedOrigins":
        """Make the allowed origins of settings: ``hosts``, the names of this machine and the listening address."""
        return cls(parse_list(hosts) | LOOPBACK | {host.lower()}, parse_list(origins))

    def calls(self, host: str) -> bool:
        """Whether the service may be called by this Host header. An address is no name that could be turned."""
        name = _name(host)
        return "*" in self.hosts or name in self.hosts or _is_address(name)

    def may_write(self, origin: str, host: str) -> bool:
        """Whether a page of this origin may: one of the service's own, or one that is listed."""
        return origin.lower() in self.origins or urlsplit(origin).netloc.lower() == host.lower() != ""


class Origins:
    """Refuses requests that a foreign page has a browser send, and marks every answer as none for a page."""

    def __init__(self, app: ASGIApp, allowed: AllowedOrigins) -> None:
        self._app = app
        self._allowed = allowed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_marked(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
                if scope["path"] == documentation.PATH:
                    headers["content-security-policy"] = documentation.POLICY
                elif scope["path"] in console_files.PAGES:
                    headers["content-security-policy"] = console_files.build_policy(scope["path"])
            await send(message)

        error = self._refusal(scope["method"], scope["path"], Headers(scope=scope))
        await (self._app if error is None else problems.problem_response(error, scope))(scope, receive, send_marked)

    def _refusal(
        self, method: str, path: str, headers: Headers
    ) -> MisdirectedRequestError | ForeignOriginError | UnsupportedMediaTypeError | None:
        hosts = headers.getlist("host")
        if any(not self._allowed.calls(host) for host in hosts):
            return MisdirectedRequestError(
                "The service does not go by the name in the Host header; ENGRAM_ALLOWED_HOSTS says by which."
            )
        if method in READING:
            return None
        host = hosts[0] if hosts else ""
        if any(not self._allowed.may_write(origin, host) for origin in headers.getlist("origin")):
            return ForeignOriginError(
                "Pages of this Origin may not write to the service; ENGRAM_CORS_ORIGINS says whose may."
            )
        may_be_form = path in FORM_PATHS and _is_keyed_form(headers)
        if _has_body(headers) and not may_be_form and not _is_guarded(headers.get("content-type", "")):
            return UnsupportedMediaTypeError(
                "Bodies are application/json; some routes read application/x-ndjson or application/octet-stream, "
                "POST /api/v1/files/ with a header `Authorization: Bearer` multipart/form-data."
            )
        return None


def _name(host: str) -> str:
    """The name in a Host header, without a port and without the brackets of an address."""
    if "@" in host:
        return ""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _has_body(headers: Headers) -> bool:
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _is_guarded(content_type: str) -> bool:
    media_type = content_type.partition(";")[0].strip().lower()
    return media_type in TYPES or media_type.endswith("+json")


def _is_keyed_form(headers: Headers) -> bool:
    """Whether a body is a form beside a header that no browser sends for a foreign page unasked."""
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    has_key = "idempotency-key" in headers or headers.get("authorization", "").lower().startswith("bearer ")
    return media_type == FORM and has_key
