"""Bearer tokens that an identity provider signed (JWT, RFC 7519; OIDC): whether they hold, and what they claim."""

from collections.abc import Mapping
from typing import Any

import jwt
from jwt import PyJWKClient

from engram.context.errors import ConfigurationError, UnauthorizedError, UnavailableError

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Of key pairs alone: a shared secret would let whoever checks tokens make them."""
LEEWAY_SECONDS = 30
KEYS_SECONDS = 300
"""How long the provider's keys are believed; one that is not among them has them fetched again."""
TIMEOUT_SECONDS = 5


class Tokens:
    """Checks tokens of one issuer for one audience by the keys that it publishes."""

    def __init__(self, issuer: str, audience: str, keys_url: str) -> None:
        if not keys_url.startswith(("https://", "http://")):
            raise ConfigurationError("ENGRAM_JWT_KEYS_URL must begin with https:// (or http://).")
        self._issuer = issuer
        self._audience = audience
        self._keys = PyJWKClient(keys_url, lifespan=KEYS_SECONDS, timeout=TIMEOUT_SECONDS)

    def claims(self, token: str) -> Mapping[str, Any]:
        """Verify a token and return its claims, subject and expiry among them.

        Raises:
            UnauthorizedError: it is not signed by the issuer, not for this audience, or not valid now.
            UnavailableError: the issuer's keys are out of reach.
        """
        try:
            key = self._keys.get_signing_key_from_jwt(token)
            found: Mapping[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=list(ALGORITHMS),
                audience=self._audience,
                issuer=self._issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWKClientConnectionError as error:
            raise UnavailableError("The identity provider's keys are out of reach.") from error
        except jwt.PyJWTError as error:
            raise UnauthorizedError(f"The token does not hold: {error}.") from error
        return found
