"""Login of a person at an identity provider: OpenID Connect Core 1.0, authorization code with PKCE (RFC 7636)."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from engram.context.bounded_call import call_within
from engram.context.errors import UnauthorizedError, UnavailableError

TIMEOUT_SECONDS = 10.0
"""Of each step of the exchange of a code, such as connecting or a wait for bytes; half of what all may take."""
VERIFIER_BYTES = 48
"""Random bytes of a code verifier: 64 characters, of which RFC 7636 wants at least 43."""


@dataclass(frozen=True, slots=True)
class LoginClient:
    """The service as the provider knows it; without a secret it is a public client."""

    id: str
    secret: str | None

    @classmethod
    def from_setting(cls, text: str) -> "LoginClient":
        """Make it of an id and, after a space, a secret."""
        client_id, _, secret = text.strip().partition(" ")
        return cls(client_id, secret.strip() or None)


@dataclass(frozen=True, slots=True)
class LoginAttempt:
    """A login that has begun: what its end is checked by. The browser that began it keeps it."""

    state: str
    nonce: str
    verifier: str

    @classmethod
    def begin(cls) -> "LoginAttempt":
        """Make an attempt that nobody can guess."""
        return cls(secrets.token_urlsafe(16), secrets.token_urlsafe(16), secrets.token_urlsafe(VERIFIER_BYTES))


def build_address(
    metadata: Mapping[str, Any], client: LoginClient, attempt: LoginAttempt, redirect_uri: str
) -> str:
    """Build the address at the provider where a person logs in."""
    scopes = ["openid", *(["groups"] if "groups" in (metadata.get("scopes_supported") or ()) else [])]
    with _open_client(metadata, client, redirect_uri) as http:
        address, _ = http.create_authorization_url(
            metadata["authorization_endpoint"],
            state=attempt.state,
            nonce=attempt.nonce,
            scope=" ".join(scopes),
            code_verifier=attempt.verifier,
        )
    return str(address)


def exchange_code(
    metadata: Mapping[str, Any], client: LoginClient, attempt: LoginAttempt, redirect_uri: str, code: str
) -> str:
    """Exchange the code of a login for the person's ID token, which is not verified yet.

    Raises:
        UnauthorizedError: the provider refuses the code, or gives no ID token.
        UnavailableError: the provider cannot be reached.
    """
    from authlib.common.errors import AuthlibBaseError  # takes half a second that only logins need

    try:
        with _open_client(metadata, client, redirect_uri) as http:
            tokens = call_within(
                2 * TIMEOUT_SECONDS,
                lambda: http.fetch_token(metadata["token_endpoint"], code=code, code_verifier=attempt.verifier),
            )
    except httpx.HTTPStatusError as error:
        raise UnavailableError(f"The identity provider failed: {error.response.status_code}.") from error
    except (httpx.HTTPError, TimeoutError) as error:
        raise UnavailableError("The identity provider is out of reach.") from error
    except (AuthlibBaseError, ValueError) as error:
        raise UnauthorizedError("The identity provider refuses the login.") from error
    if not isinstance(token := tokens.get("id_token"), str):
        raise UnauthorizedError("The identity provider gives no ID token.")
    return token


def _open_client(metadata: Mapping[str, Any], client: LoginClient, redirect_uri: str) -> Any:
    from authlib.integrations.httpx_client import OAuth2Client

    methods = metadata.get("token_endpoint_auth_methods_supported") or ("client_secret_basic",)
    method = "client_secret_basic" if "client_secret_basic" in methods else "client_secret_post"
    return OAuth2Client(
        client.id,
        client.secret,
        token_endpoint_auth_method="none" if client.secret is None else method,
        code_challenge_method="S256",
        redirect_uri=redirect_uri,
        timeout=TIMEOUT_SECONDS,
    )
