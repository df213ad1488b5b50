"""Bearer tokens that an identity provider signed (JWT, RFC 7519; OIDC): whether they hold, and what they claim."""

from collections.abc import Mapping
from typing import Any

import jwt

from engram.context.errors import ConfigurationError, UnauthorizedError
from engram.providers.jwt_keys import ProviderKeys

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Of key pairs alone: a shared secret would let whoever checks tokens make them."""
LEEWAY_SECONDS = 30


class Tokens:
    """Checks tokens of one issuer by the keys that it publishes."""

    def __init__(self, issuer: str, *audiences: str) -> None:
        """Begin to fetch the issuer's keys in the background. A token has to be for one of ``audiences``."""
        if not issuer.startswith(("https://", "http://")):
            raise ConfigurationError("ENGRAM_JWT_ISSUER must begin with https:// (or http://).")
        self._issuer = issuer
        self._audiences = audiences
        self.keys = ProviderKeys(issuer)

    def claims(self, token: str) -> Mapping[str, Any]:
        """Verify a token without network access and return its claims, subject and expiry among them.

        Raises:
            UnauthorizedError: it is not signed by the issuer, not for this audience, or not valid now.
            UnavailableError: the issuer's keys are out of reach, or are being fetched anew.
        """
        try:
            key = self.keys.find(jwt.get_unverified_header(token).get("kid"))
            payload: Mapping[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=list(ALGORITHMS),
                audience=self._audiences,
                issuer=self._issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise UnauthorizedError(f"The token does not hold: {error}.") from error
        except (OverflowError, RecursionError, TypeError, ValueError) as error:  # as of `exp: 1e400`
            raise UnauthorizedError("The token does not hold: a claim is no value that it may have.") from error
        return payload
