"""Bearer tokens that an identity provider signed (JWT, RFC 7519; OIDC): whether they hold, and what they claim."""

from collections.abc import Mapping
from typing import Any

import jwt

from engram.context.errors import UnauthorizedError
from engram.providers.jwt_keys import ProviderKeys

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Of key pairs alone: a shared secret would let whoever checks tokens make them."""
LEEWAY_SECONDS = 30


class Tokens:
    """Checks tokens of one issuer for one audience by the keys that the issuer publishes."""

    def __init__(self, keys: ProviderKeys, audience: str, *, is_client: bool = False) -> None:
        """``is_client``: whether the audience is a client of the issuer, and takes only what was issued to it."""
        self.keys = keys
        self._audience = audience
        self._is_client = is_client

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
                audience=self._audience,
                issuer=self.keys.issuer,
                leeway=LEEWAY_SECONDS,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError as error:
            raise UnauthorizedError(f"The token does not hold: {error}.") from error
        except (OverflowError, RecursionError, TypeError, ValueError) as error:  # as of `exp: 1e400`
            raise UnauthorizedError("The token does not hold: a claim is no value that it may have.") from error
        # OpenID Connect Core 1.0, section 3.1.3.7, steps 3 to 5.
        if self._is_client and payload.get("azp", payload["aud"]) not in (self._audience, [self._audience]):
            raise UnauthorizedError("The token does not hold: it was issued to another client.")
        return payload
