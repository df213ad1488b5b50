"""Login of people at the identity provider, for pages in a browser."""

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engram.config.safe_urls import is_safe_url
from engram.context.errors import UnauthorizedError, UnavailableError
from engram.providers.jwt_tokens import Tokens
from engram.providers.openid_login import LoginAttempt, LoginClient, build_address, exchange_code
from engram.services.auth.authentication import Authentication

LEAST_SECONDS = 60
"""That a login's token has to hold, or the person would be sent to log in again and again."""


@dataclass(frozen=True, slots=True)
class Login:
    """A person who has logged in.

    Attributes:
        token: the provider's ID token, which each request of the browser brings from now on.
        seconds: how long it holds.
    """

    token: str
    seconds: int


class LoginService:
    """Logs people in. No state stays in the service: the browser keeps the attempt, then the token."""

    def __init__(self, tokens: Tokens, client: LoginClient, authentication: Authentication) -> None:
        self._tokens = tokens
        self._client = client
        self.authentication = authentication
        """Authentication by the tokens of logins."""

    def begin(self, redirect_uri: str) -> tuple[str, LoginAttempt]:
        """Return the provider's address where the person logs in, and what the browser keeps meanwhile.

        Raises:
            UnavailableError: the provider's metadata were never fetched, or lead nowhere.
        """
        attempt = LoginAttempt.begin()
        return build_address(self._read_metadata(), self._client, attempt, redirect_uri), attempt

    def finish(self, attempt: LoginAttempt | None, answer: Mapping[str, str], redirect_uri: str) -> Login:
        """Take what the provider sent the browser back with.

        Args:
            attempt: what the browser kept; None: nothing.
            answer: the parameters of the address.

        Raises:
            UnauthorizedError: it is not the answer to this attempt, or nobody may use the service by it.
            UnavailableError: as ``begin``, or the provider cannot be reached.
        """
        if attempt is None or not secrets.compare_digest(answer.get("state", "").encode(), attempt.state.encode()):
            raise UnauthorizedError("This login was not begun in this browser, or took too long.")
        if "code" not in answer:
            raise UnauthorizedError("The identity provider refuses the login.")
        token = exchange_code(self._read_metadata(), self._client, attempt, redirect_uri, answer["code"])
        claims = self._tokens.claims(token)
        if claims.get("nonce") != attempt.nonce:
            raise UnauthorizedError("The identity provider's token is of another login.")
        seconds = int(float(claims["exp"]) - time.time())
        if seconds < LEAST_SECONDS:
            raise UnauthorizedError(f"The identity provider's token has to hold for {LEAST_SECONDS} seconds.")
        self.authentication.find_principal(f"Bearer {token}")
        return Login(token, seconds)

    def _read_metadata(self) -> Mapping[str, Any]:
        """The provider's metadata, with both addresses that a login needs."""
        metadata = self._tokens.keys.metadata
        if not metadata:
            raise UnavailableError("The identity provider is out of reach.")
        if not all(is_safe_url(str(metadata.get(f"{kind}_endpoint"))) for kind in ("authorization", "token")):
            raise UnavailableError("The identity provider names no https addresses to log in at.")
        return metadata
