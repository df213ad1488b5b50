"""Login of people at the identity provider, for pages in a browser."""

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass

from engram.context.errors import UnauthorizedError, UnavailableError
from engram.providers.jwt_tokens import Tokens
from engram.providers.openid_login import LoginAttempt, LoginClient, build_address, exchange_code
from engram.services.auth.authentication import Authentication


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
        self._authentication = authentication

    def begin(self, redirect_uri: str) -> tuple[str, LoginAttempt]:
        """Return the provider's address where the person logs in, and what the browser keeps meanwhile.

        Raises:
            UnavailableError: the provider's metadata were never fetched.
        """
        metadata = self._tokens.keys.metadata
        if not metadata:
            raise UnavailableError("The identity provider is out of reach.")
        attempt = LoginAttempt.begin()
        return build_address(metadata, self._client, attempt, redirect_uri), attempt

    def finish(self, attempt: LoginAttempt | None, answer: Mapping[str, str], redirect_uri: str) -> Login:
        """Take what the provider sent the browser back with.

        Args:
            attempt: what the browser kept; None: nothing.
            answer: the parameters of the address.

        Raises:
            UnauthorizedError: it is not the answer to this attempt, or nobody may use the service by it.
            UnavailableError: the provider cannot be reached.
        """
        if attempt is None or not secrets.compare_digest(answer.get("state", "").encode(), attempt.state.encode()):
            raise UnauthorizedError("This login was not begun in this browser, or took too long.")
        if "code" not in answer:
            raise UnauthorizedError("The identity provider refuses the login.")
        token = exchange_code(self._tokens.keys.metadata, self._client, attempt, redirect_uri, answer["code"])
        claims = self._tokens.claims(token)
        if claims.get("nonce") != attempt.nonce:
            raise UnauthorizedError("The identity provider's token is of another login.")
        self._authentication.find_principal(f"Bearer {token}")
        return Login(token, int(claims["exp"] - time.time()))
