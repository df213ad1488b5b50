"""GET requests to another product: bounded retries, and one line for each way in which it can fail."""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any

import httpx

TRIES = 5
LONGEST_WAIT_SECONDS = 60.0
"""A longer `Retry-After` is not waited for; the next pull goes on from there."""
FIRST_WAIT_SECONDS = 0.5
TIMEOUT_SECONDS = 30.0


class PullError(Exception):
    """Base of the errors of pulls."""


class ProductError(PullError):
    """The product cannot be read."""


class CredentialsError(ProductError):
    """The product refuses the credentials."""


class UnavailableProductError(ProductError):
    """The product is out of reach, busy, or broken for now; a later try may succeed."""


class MissingRouteError(ProductError):
    """The product has no such route, or no such record."""


@dataclass
class ProductHttp:
    """Talks to one product.

    Attributes:
        name: of the product, for messages.
        base_url: without a slash at its end.
        headers, auth: with the credentials.
        credentials: names of the variables that hold them, for messages.
        pause: waits for some seconds; tests pass their own.
    """

    name: str
    base_url: str
    credentials: str
    headers: Mapping[str, str] | None = None
    auth: tuple[str, str] | None = None
    pause: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        try:
            host = httpx.URL(self.base_url).host
            self._http = httpx.Client(
                base_url=self.base_url,
                headers=self.headers,
                auth=self.auth,
                timeout=TIMEOUT_SECONDS,
                # A proxy of the environment leads away from this machine, not to it.
                trust_env=host not in {"127.0.0.1", "::1", "localhost"},
            )
        except (httpx.InvalidURL, ValueError, UnicodeEncodeError) as error:
            raise ProductError(f"{self.base_url!r} or the credentials of {self.name} cannot be sent.") from error
        if not host:
            raise ProductError(f"{self.base_url!r} is no URL of {self.name}.")

    @property
    def host(self) -> str:
        """The host that the URL names."""
        return httpx.URL(self.base_url).host

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """Return the JSON of an answer; no connection, 429 and 5xx are tried again.

        Raises:
            CredentialsError: 401 or 403.
            MissingRouteError: 404 or 405.
            UnavailableProductError: all tries failed, or a `Retry-After` is too long to wait for.
            ProductError: any other refusal, or an answer that is no JSON.
        """
        for tried in range(TRIES):
            retry_after: float | None = None
            try:
                response = self._http.get(path, params=query)
            except httpx.HTTPError as error:
                failure = UnavailableProductError(
                    f"{self.name} at {self.base_url} is out of reach ({str(error) or type(error).__name__})."
                )
            else:
                if response.status_code != HTTPStatus.TOO_MANY_REQUESTS and response.status_code < 500:
                    return self._json(response)
                retry_after = _retry_after(response)
                failure = UnavailableProductError(f"{self.name} at {self.base_url} answers {response.status_code}.")
            if tried + 1 == TRIES or (retry_after or 0.0) > LONGEST_WAIT_SECONDS:
                break
            backoff = FIRST_WAIT_SECONDS * 2**tried * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
            self.pause(backoff if retry_after is None else retry_after)
        raise failure

    def _json(self, response: httpx.Response) -> Any:
        status = response.status_code
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            raise CredentialsError(
                f"{self.name} at {self.base_url} refuses the credentials ({status}): see {self.credentials}."
            )
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
            raise MissingRouteError(
                f"{self.name} at {self.base_url} has no {response.request.url.path} ({status})."
            )
        if not response.is_success:
            raise ProductError(f"{self.name} at {self.base_url} answers {status}: {response.text[:200]}")
        try:
            return response.json()
        except ValueError as error:
            raise ProductError(f"{self.name} at {self.base_url} does not answer with JSON.") from error


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds to wait, as the header says it: a number, or a date; None without one, or with an odd one."""
    value = response.headers.get("retry-after", "").strip()
    if value.isdecimal():
        return float(value)
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (moment - datetime.now(UTC)).total_seconds())
