"""A model server that answers JSON with JSON: retries with jitter, and one deadline over all tries."""

import time
from collections.abc import Mapping
from typing import Any

import httpx
import orjson
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from engram.context import deadline
from engram.context.errors import ConfigurationError, UnavailableError
from engram.providers.bounded_client import BoundedClient, TooLongError
from engram.providers.llm.replies import retry_after_seconds

MAX_RESPONSE_BYTES = 64 * 2**20
"""Longest response that is read: 1,024 vectors of 4,096 numbers take 60 MB."""
EXCERPT_CHARACTERS = 200
BACKOFF_SECONDS = 0.25
CONNECTIONS = 64
REFUSALS = (400, 413, 422)
"""Statuses for a batch or a text that is too long."""


class RefusedError(Exception):
    """The server does not take this request; another one it may take."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class UnusableResponseError(Exception):
    """The server answered with something other than the JSON of its protocol."""


class _RetryableError(Exception):
    """One try failed in a way that another try may not."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class JsonEndpoint:
    """A server behind a base URL; safe to share between threads.

    Tries that may succeed later (no connection, 429, 5xx) are repeated after a random wait of at most a quarter of
    a second, doubled each time, or as long as ``Retry-After`` says. No try and no wait goes beyond the deadline.
    """

    def __init__(self, name: str, base_url: str, api_key: str | None, *, setting: str) -> None:
        """Open nothing yet.

        Args:
            name: what messages call the server, such as ``embedding server``.
            setting: the prefix of its settings, such as ``ENGRAM_EMBEDDING``.

        Raises:
            ConfigurationError: the address or the key cannot be used.
        """
        self.name = name
        self.base_url = _check_url(base_url, setting)
        self._setting = setting
        self._key = _check_key(api_key, setting)
        self._client = BoundedClient(self._key, CONNECTIONS)

    def post(self, path: str, content: Mapping[str, Any], *, seconds: float, attempts: int = 4) -> Any:
        """Send JSON to ``base_url/path`` and return the JSON of the response.

        Args:
            seconds: all tries together take no longer, nor longer than the request that is served has remaining.
            attempts: most tries.

        Raises:
            RefusedError: status 400, 413 or 422.
            UnusableResponseError: the response is no JSON, or longer than ``MAX_RESPONSE_BYTES``.
            UnavailableError: the server is away, too slow, overloaded, or refuses the key or the path.
        """
        until = time.monotonic() + seconds
        request_end = deadline.end()
        until = until if request_end is None else min(until, request_end)
        body = orjson.dumps(content)
        backoff = wait_random_exponential(multiplier=BACKOFF_SECONDS, max=10.0)

        def wait(state: RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            retry_after = error.retry_after if isinstance(error, _RetryableError) else None
            return backoff(state) if retry_after is None else retry_after

        def is_over(state: RetryCallState) -> bool:
            pause = state.upcoming_sleep
            return stop_after_attempt(attempts)(state) or time.monotonic() + pause >= until

        retrying = Retrying(stop=is_over, wait=wait, retry=retry_if_exception_type(_RetryableError), reraise=True)
        try:
            return retrying(self._try_once, path, body, until)
        except _RetryableError as error:
            tries = retrying.statistics["attempt_number"]
            raise UnavailableError(f"{error} ({tries} {'try' if tries == 1 else 'tries'}).") from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _try_once(self, path: str, content: bytes, until: float) -> Any:
        late = f"The {self.name} {self.base_url} did not answer in time"
        remaining = until - time.monotonic()
        if remaining <= 0:
            raise _RetryableError(late)
        try:
            response, body = self._client.post(
                f"{self.base_url}/{path}", content, seconds=remaining, most_bytes=MAX_RESPONSE_BYTES
            )
        except TimeoutError as error:
            raise _RetryableError(late) from error
        except TooLongError as error:
            raise UnusableResponseError(f"its response exceeds {MAX_RESPONSE_BYTES} bytes") from error
        except httpx.TransportError as error:
            raise _RetryableError(
                f"The {self.name} {self.base_url} is out of reach: {type(error).__name__}"
            ) from error
        return self._read(response, body, path)

    def _read(self, response: httpx.Response, body: bytes, path: str) -> Any:
        status = response.status_code
        failure = f"The {self.name} {self.base_url} answered with status {status}{self._words(body)}"
        if status == 429 or status >= 500:
            raise _RetryableError(failure, retry_after_seconds(response.headers))
        if status in REFUSALS:
            raise RefusedError(failure, status)
        if status in (401, 403):  # without its words: some quote parts of the key that they refuse
            raise UnavailableError(
                f"The {self.name} {self.base_url} refused the key with status {status}; set "
                f"{self._setting}_API_KEY."
            )
        if status == 404:
            raise UnavailableError(
                f"The {self.name} has nothing at {self.base_url}/{path}{self._words(body)}; see "
                f"{self._setting}_URL (which often ends in /v1) and {self._setting}_MODEL."
            )
        if not 200 <= status < 300:
            raise UnavailableError(f"{failure}.")
        try:
            return orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise UnusableResponseError("its response is not JSON") from error

    def _words(self, body: bytes) -> str:
        """Words of the server about a failure, cut short and without the key."""
        text = body.decode("utf-8", "replace")
        if self._key:
            text = text.replace(self._key, "***")
        words = " ".join(text.split())[:EXCERPT_CHARACTERS].rstrip(".")
        return f": {words}" if words else ""


def _check_url(base_url: str, setting: str) -> str:
    try:
        url = httpx.URL(base_url.strip())
    except httpx.InvalidURL as error:
        raise ConfigurationError(f"{setting}_URL is no URL: {error}.") from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise ConfigurationError(f"{setting}_URL must begin with http:// or https:// and name a host.")
    if url.userinfo or url.query or url.fragment:
        raise ConfigurationError(f"{setting}_URL must hold no credentials, query or fragment.")
    return str(url).rstrip("/")


def _check_key(api_key: str | None, setting: str) -> str | None:
    """Refuse a key that no header can carry; the HTTP library's own message would quote it."""
    key = (api_key or "").strip()
    if not (key.isascii() and key.isprintable()):
        raise ConfigurationError(f"{setting}_API_KEY must consist of printable ASCII characters.")
    return key or None
