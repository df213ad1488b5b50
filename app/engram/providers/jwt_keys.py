"""Metadata and keys of an identity provider, fetched in the background: no request ever waits for them."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx
import jwt
import structlog
from jwt import PyJWK, PyJWKSet

from engram.config.safe_urls import is_safe_url
from engram.context.bounded_call import call_within
from engram.context.errors import ConfigurationError, UnauthorizedError, UnavailableError

log = structlog.get_logger(__name__)

FRESH_SECONDS = 300.0
"""Age from which keys are fetched again; they serve meanwhile."""
KEPT_SECONDS = 24 * 3600.0
"""Age up to which keys serve while the provider is away."""
UNKNOWN_SECONDS = 10.0
"""Shortest time between two fetches because a token names a key that is not known."""
RETRY_SECONDS = 5.0
"""Until keys are fetched again after a failure; twice as long after each further one."""
MOST_RETRY_SECONDS = 300.0
TIMEOUT_SECONDS = 5.0
"""Of each step of a fetch, such as connecting or a wait for bytes."""
WHOLE_TIMEOUT_SECONDS = 2 * TIMEOUT_SECONDS
"""Of a fetch of metadata and keys, redirects included."""
MOST_BYTES = 1024 * 1024


METADATA_PATH = "/.well-known/openid-configuration"
"""Where an issuer publishes its metadata (OpenID Connect Discovery 1.0, section 4)."""


class ProviderKeys:
    """An issuer's metadata and keys, as they were last fetched."""

    def __init__(self, issuer: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin to fetch the keys in the background.

        Raises:
            ConfigurationError: the issuer is neither an https address nor one of this machine.
        """
        if not is_safe_url(issuer):
            raise ConfigurationError("ENGRAM_JWT_ISSUER must be an https address, or an http one of this machine.")
        self.metadata: Mapping[str, Any] = {}
        """Empty until they were fetched."""
        self.issuer = issuer
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: Mapping[str, PyJWK] = {}
        self._fetched_at: float | None = None
        self._tried_at = -UNKNOWN_SECONDS
        self._failures = 0
        self._fetching = False
        self._first = threading.Event()
        self._fetch_beside()

    def wait(self, seconds: float) -> bool:
        """Wait until the first fetch has ended, for a process that starts; whether it has."""
        return self._first.wait(seconds)

    def find(self, name: str | None) -> PyJWK:
        """Return the key that a token names.

        Raises:
            UnauthorizedError: the provider has no such key.
            UnavailableError: there are no keys that serve, or they are being fetched as this one is not among them.
        """
        now = self._clock()
        fetched_at = self._fetched_at
        if fetched_at is None or now - fetched_at >= KEPT_SECONDS:
            self._fetch_if_due(now, FRESH_SECONDS)
            raise UnavailableError("The identity provider's keys are out of reach.")
        key = self._keys.get(name or "")
        if key is None:
            self._fetch_if_due(now, UNKNOWN_SECONDS)
            if self._fetching:
                raise UnavailableError("The token's key is not known yet; the provider's keys are being fetched.")
            raise UnauthorizedError("The token does not hold: the identity provider has no such key.")
        if now - fetched_at >= FRESH_SECONDS:
            self._fetch_if_due(now, FRESH_SECONDS)
        return key

    def _fetch_if_due(self, now: float, after_seconds: float) -> None:
        """Begin a fetch unless one is under way or the last one is too recent, a failed one by its number."""
        if self._failures:
            after_seconds = min(MOST_RETRY_SECONDS, RETRY_SECONDS * 2 ** min(self._failures - 1, 10))
        if not self._fetching and now - self._tried_at >= after_seconds:
            self._fetch_beside()

    def _fetch_beside(self) -> None:
        with self._lock:
            if self._fetching:
                return
            self._fetching, self._tried_at = True, self._clock()
        threading.Thread(target=self._fetch, name="jwt-keys", daemon=True).start()

    def _fetch(self) -> None:
        try:
            ends = time.monotonic() + WHOLE_TIMEOUT_SECONDS
            metadata = _fetch_in_time(f"{self.issuer.rstrip('/')}{METADATA_PATH}", ends)
            _check_issuer(metadata, self.issuer)
            self._keys = _read_signing_keys(_fetch_in_time(str(metadata.get("jwks_uri")), ends))
            self.metadata = metadata
            self._fetched_at, self._failures = self._clock(), 0
        except Exception as error:  # noqa: BLE001 - whatever the provider does, requests go on with the old keys
            self._failures += 1
            log.warning(
                "identity provider's keys not fetched",
                error=str(error) or type(error).__name__,
                failures=self._failures,
            )
        finally:
            self._tried_at = self._clock()
            self._fetching = False
            self._first.set()


def _check_issuer(metadata: Mapping[str, Any], issuer: str) -> None:
    if metadata.get("issuer") != issuer:
        raise ValueError(f"the metadata are of another issuer, {metadata.get('issuer')!r}")


def _fetch_in_time(url: str, ends: float) -> dict[str, Any]:
    return call_within(max(0.0, ends - time.monotonic()), lambda: _fetch_document(url, ends))


def _fetch_document(url: str, ends: float) -> dict[str, Any]:
    """Fetch a JSON document, of bounded size and in bounded time.

    Args:
        ends: when the time is over, by ``time.monotonic``.

    Raises:
        ValueError: the document is too large, takes too long, is no JSON, or an address on the way is not safe.
        httpx.HTTPError: the provider cannot be reached or refuses.
    """
    body = bytearray()

    def check_step(request: httpx.Request) -> None:
        if not is_safe_url(str(request.url)):
            raise ValueError(f"{request.url} is no https address")
        remaining = ends - time.monotonic()
        if remaining <= 0.0:
            raise ValueError("the document arrives too slowly")
        request.extensions["timeout"] = httpx.Timeout(min(TIMEOUT_SECONDS, remaining)).as_dict()

    with (
        httpx.Client(follow_redirects=True, event_hooks={"request": [check_step]}) as client,
        client.stream("GET", url) as response,
    ):
        response.raise_for_status()
        for chunk in response.iter_bytes():
            body += chunk
            if len(body) > MOST_BYTES or time.monotonic() > ends:
                raise ValueError("the document is too large, or arrives too slowly")
    parsed = json.loads(bytes(body))
    return parsed if isinstance(parsed, dict) else {}


def _read_signing_keys(document: dict[str, Any]) -> Mapping[str, PyJWK]:
    """The keys of a JWK set that sign, by their names.

    Raises:
        ValueError: there is none, or it is no JWK set.
    """
    try:
        keys = PyJWKSet.from_dict(document).keys
    except jwt.PyJWTError as error:
        raise ValueError(f"the answer is no JWK set: {error}") from error
    named = {key.key_id: key for key in keys if key.key_id and key.public_key_use in ("sig", None)}
    if not named:
        raise ValueError("the JWK set has no named key that signs")
    return named
