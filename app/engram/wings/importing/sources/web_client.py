"""Pages of one website over HTTP: polite, bounded, and by default from public addresses only."""

import ipaddress
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from types import TracebackType
from typing import Any, Self
from urllib.parse import urldefrag, urljoin, urlsplit

import httpcore
import httpx

from engram.context.bounded_call import call_within
from engram.wings.importing.sources.source import load_library

AGENT = "engram"
DELAY_SECONDS = 0.5
"""Time between two requests, unless robots.txt asks for more."""
LONGEST_DELAY_SECONDS = 30.0
TIMEOUT_SECONDS = 30.0
ANSWER_SECONDS = 300.0
"""Time of an answer in all, however slowly its bytes come."""
RUN_BYTES = 1 << 30
"""Bytes of all answers of a run together."""
REDIRECTS = 5
FAILURES = 10
"""Requests one after the other without an answer, after which a run asks for nothing more."""
_BUSY = {429, 503}
_REDIRECT = {301, 302, 303, 307, 308}
_FAILURES = (
    httpx.HTTPError,
    httpx.InvalidURL,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.TimeoutException,
    httpcore.UnsupportedProtocol,
)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class WebResponse:
    """The response of a website.

    Attributes:
        url: of the last redirect.
        data: of status 200.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    data: bytes


class WebClient:
    """Asks one website, one request after the other.

    Args:
        address: says which host and port the website has.
        allow_private: whether addresses of a private network, such as 10.0.0.1, are asked.
    """

    def __init__(self, address: str, *, allow_private: bool) -> None:
        self._address = address
        self._site = _find_site(address)
        self._robots: Any = None
        self._next_time = 0.0
        self._bytes_left = RUN_BYTES
        self._failures = 0
        self._is_busy = False
        self._client = httpx.Client(
            transport=PinnedTransport(_is_any if allow_private else is_public),
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
            headers={"user-agent": f"{AGENT}/{version('engram')}"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

    def has(self, url: str) -> bool:
        """Whether a URL is of this website."""
        return _find_site(url) == self._site

    def read_robots(self) -> None:
        """Read robots.txt, by which ``may_read`` answers.

        Raises:
            OSError: the website does not answer, so nothing may be read.
        """
        protego = load_library("protego")
        answer = self.get(urljoin(self._address, "/robots.txt"), most_bytes=1 << 20)
        if answer.status >= 500:
            raise OSError(f"robots.txt is answered with {answer.status}")
        self._robots = protego.Protego.parse(answer.data.decode(errors="replace") if answer.status == 200 else "")

    def may_read(self, url: str) -> bool:
        """Whether robots.txt allows a URL."""
        return bool(self._robots.can_fetch(url, AGENT))

    def list_sitemaps(self) -> list[str]:
        """Return the sitemaps that robots.txt names, else the usual one."""
        return list(self._robots.sitemaps) or [urljoin(self._address, "/sitemap.xml")]

    def get(self, url: str, most_bytes: int, headers: Mapping[str, str] | None = None) -> WebResponse:
        """Ask for a URL and follow redirects within the website.

        Raises:
            OSError: there is no answer, it is too large, it leads elsewhere, or the website asked to wait.
        """
        for _ in range(REDIRECTS + 1):
            if not self.has(url):
                raise OSError(f"leads to another website: {url}")
            answer = self._ask(url, most_bytes, headers or {})
            if answer.status not in _REDIRECT:
                return answer
            url = urldefrag(urljoin(url, answer.headers.get("location", ""))).url
            if self._robots is not None and not self.may_read(url):
                raise OSError(f"leads to a page that robots.txt forbids: {url}")
        raise OSError(f"has more than {REDIRECTS} redirects")

    def _ask(self, url: str, most_bytes: int, headers: Mapping[str, str]) -> WebResponse:
        if self._is_busy:
            raise OSError("not asked for, as the website asked to wait")
        if self._failures >= FAILURES:
            raise OSError(f"not asked for, as {FAILURES} requests had no answer")
        time.sleep(max(0.0, self._next_time - time.monotonic()))
        self._failures += 1
        try:
            response, data = call_within(
                TIMEOUT_SECONDS + ANSWER_SECONDS, lambda: self._exchange(url, most_bytes, headers)
            )
        except TimeoutError as error:
            raise OSError(f"takes longer than {ANSWER_SECONDS:g} seconds") from error
        except _FAILURES as error:
            raise OSError(f"cannot be read: {error or type(error).__name__}") from error
        finally:
            self._next_time = time.monotonic() + self._find_delay()
        self._is_busy = response.status_code in _BUSY
        return WebResponse(url, response.status_code, response.headers, data)

    def _exchange(self, url: str, most_bytes: int, headers: Mapping[str, str]) -> tuple[httpx.Response, bytes]:
        with self._client.stream("GET", url, headers=dict(headers)) as response:
            self._failures = 0
            return response, self._receive(response, most_bytes) if response.status_code == 200 else b""

    def _receive(self, response: httpx.Response, most_bytes: int) -> bytes:
        data = bytearray()
        ends = time.monotonic() + ANSWER_SECONDS
        for piece in response.iter_bytes(65_536):
            data += piece
            self._bytes_left -= len(piece)
            if len(data) > most_bytes:
                raise OSError(f"is larger than {most_bytes >> 20} MiB")
            if time.monotonic() > ends:
                raise OSError(f"takes longer than {ANSWER_SECONDS:g} seconds")
            if self._bytes_left < 0:
                raise OSError(f"not read, as this run has read {RUN_BYTES >> 20} MiB")
        return bytes(data)

    def _find_delay(self) -> float:
        asked = None if self._robots is None else self._robots.crawl_delay(AGENT)
        return min(LONGEST_DELAY_SECONDS, max(DELAY_SECONDS, float(asked or 0.0)))


class PinnedTransport(httpx.BaseTransport):
    """Connects to the very address that was checked, so that a name cannot lead elsewhere a moment later.

    Proxies of the environment are not used.
    """

    def __init__(self, is_allowed: Callable[[str], bool]) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(), network_backend=_PinnedBackend(is_allowed)
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        url = request.url
        answer = self._pool.handle_request(
            httpcore.Request(
                request.method,
                httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer), extensions={})

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, answer: httpcore.Response) -> None:
        self._answer = answer

    def __iter__(self) -> Iterator[bytes]:
        yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


class _PinnedBackend(httpcore.SyncBackend):
    """Resolves a name, checks all of its addresses, and connects to one of these."""

    def __init__(self, is_allowed: Callable[[str], bool]) -> None:
        self._is_allowed = is_allowed

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        addresses = [str(one[4][0]) for one in found]
        refused = [address for address in addresses if not self._is_allowed(address)]
        if refused or not addresses:
            raise OSError(
                f"{host} is at {', '.join(refused)}, which is no public address (--allow-private asks it)"
            )
        return super().connect_tcp(addresses[0], port, timeout, local_address, socket_options)


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public internet, also one of version 4 inside one of version 6."""
    number = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(number, ipaddress.IPv6Address):
        inner = [number.ipv4_mapped, number.sixtofour, *(number.teredo or ())]
        if number in _NAT64:
            inner.append(ipaddress.IPv4Address(int(number) & 0xFFFFFFFF))
        if any(inner):
            return all(is_public(str(one)) for one in inner if one is not None)
    return number.is_global and not number.is_multicast


def _is_any(_address: str) -> bool:
    return True


def _find_site(url: str) -> tuple[str, int | None]:
    """Host and port, None for the usual ports: many sites redirect from HTTP to HTTPS."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return "", None
    if parts.scheme not in ("http", "https"):
        return "", None
    return (parts.hostname or "").rstrip("."), None if port in (None, 80, 443) else port
