"""Login at an identity provider: the service says whose a caller's token is, and each request goes there with it.

The server is an OAuth 2.0 protected resource: its metadata (RFC 9728) name the identity provider.
"""

from dataclasses import dataclass

import httpx
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.settings import AuthSettings

from engram_client import AsyncEngram

PROVIDED = "oidc:"
"""Begins the names of those whose tokens an identity provider made, as the service calls them."""
REFUSALS = (401, 403)
PRINCIPALS = "principals"


@dataclass(frozen=True)
class Login:
    """Addresses of the login and of the server itself, as callers reach them."""

    issuer: str
    address: str

    def build_settings(self) -> AuthSettings:
        """Build the settings of the protected resource. The service checks the audience of tokens.

        The issuer stays as it is spelled: clients compare it with the provider's own metadata.
        """
        return AuthSettings.model_validate(
            {
                "issuer_url": self.issuer,
                "resource_server_url": self.address,
                "validate_token_resource": False,
            }
        )


class ServiceTokenVerifier(TokenVerifier):
    """Has the service verify tokens."""

    def __init__(self, url: str) -> None:
        self._http = httpx.AsyncClient(base_url=url)

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the token with whose it is; None if the service does not take it.

        Only tokens of the identity provider are taken: a service that needs no keys answers to anything.

        Raises:
            httpx.HTTPError: the service is out of reach, or fails.
        """
        response = await self._http.get("/access/me", headers={"authorization": f"Bearer {token}"})
        if response.status_code in REFUSALS:
            return None
        who = response.raise_for_status().json()
        name: str = who["name"]
        if not name.startswith(PROVIDED):
            return None
        claims = {PRINCIPALS: who[PRINCIPALS]}
        return AccessToken(token=token, client_id=name, scopes=[], subject=name, claims=claims)


class CallerTransport(httpx.AsyncHTTPTransport):
    """Sends each request to the service with the token of the caller whose tool runs."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send the request as the caller's."""
        request.headers["authorization"] = f"Bearer {get_caller().token}"
        return await super().handle_async_request(request)


def connect_callers(url: str | None, collection: str) -> AsyncEngram:
    """Make a client that asks for whoever calls, without a key of its own."""
    return AsyncEngram(url, collection=collection, key="", transport=CallerTransport())


def get_caller() -> AccessToken:
    """Return the token of the request that is served."""
    caller = get_access_token()
    if caller is None:
        raise RuntimeError("no request of a logged-in caller is served")
    return caller


def list_own_readers() -> list[str]:
    """List whom alone a caller's own texts are for: the person, not the groups that the person is in."""
    principals = (get_caller().claims or {})[PRINCIPALS]
    return [name for name in principals if name.startswith("user:")]
