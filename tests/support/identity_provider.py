"""A local identity provider, at which whoever it names is logged in already."""

import base64
import hashlib
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlencode

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from fastapi import FastAPI, Request
from fastapi.responses import RedirectResponse
from jwt.algorithms import RSAAlgorithm

from tests.support.live_server import LiveServer

AUDIENCE = "engram"


class IdentityProvider:
    """An OAuth 2.1 and OpenID Connect server: registration, code with PKCE, JWT as access tokens and ID tokens."""

    def __init__(self, scopes: Mapping[str, list[str]]) -> None:
        """``scopes``: by collection, of everybody."""
        self.scopes = scopes
        self.key = generate_private_key(65537, 2048)
        self.person, self.groups = "", [""]
        """Who sits before the browser."""
        self.claims: dict[str, Any] = {}
        """Of its ID tokens, in place of the right ones."""
        self.codes: dict[str, dict[str, Any]] = {}
        self.url = ""
        self.app = FastAPI()
        for kind in ("oauth-authorization-server", "openid-configuration"):
            self.app.get(f"/.well-known/{kind}")(self.describe)
        self.app.get("/keys")(self.list_keys)
        self.app.post("/register", status_code=201)(self.register)
        self.app.get("/authorize")(self.authorize)
        self.app.post("/token")(self.grant)

    @classmethod
    @contextmanager
    def serve(cls, scopes: Mapping[str, list[str]]) -> Iterator["IdentityProvider"]:
        """A provider over HTTP."""
        made = cls(scopes)
        with LiveServer(made.app) as served:
            made.url = served.url
            yield made

    def describe(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            **{f"{kind}_endpoint": f"{self.url}/{path}" for kind, path in (
                ("authorization", "authorize"), ("token", "token"), ("registration", "register")
            )},
            "jwks_uri": f"{self.url}/keys",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        }  # fmt: skip

    def list_keys(self) -> dict[str, Any]:
        public = RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return {"keys": [public | {"kid": "1", "alg": "RS256", "use": "sig"}]}

    async def register(self, request: Request) -> dict[str, Any]:
        return await request.json() | {"client_id": secrets.token_hex(8)}

    def authorize(
        self, redirect_uri: str, state: str, code_challenge: str, client_id: str, nonce: str | None = None
    ) -> RedirectResponse:
        code = secrets.token_hex(8)
        claims = {"aud": client_id, **({} if nonce is None else {"nonce": nonce}), **self.claims}
        self.codes[code] = {
            "challenge": code_challenge, "sub": self.person, "groups": self.groups, "id_claims": claims
        }  # fmt: skip
        return RedirectResponse(f"{redirect_uri}?{urlencode({'code': code, 'state': state})}")

    async def grant(self, request: Request) -> dict[str, Any]:
        form = {name: values[0] for name, values in parse_qs((await request.body()).decode()).items()}
        granted = self.codes.pop(form["code"])
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == granted["challenge"]
        return {
            "access_token": self.sign(granted["sub"], granted["groups"]),
            "token_type": "Bearer",
            "expires_in": 600,
            "id_token": self.sign(granted["sub"], **{"groups": granted["groups"]} | granted["id_claims"]),
        }

    def sign(self, person: str, groups: list[str], **other: Any) -> str:
        claims = {"iss": self.url, "aud": AUDIENCE, "sub": person, "exp": time.time() + 600, "groups": groups}
        claims |= {"engram": {"tenant": "local", "scopes": self.scopes}} | other
        return jwt.encode(claims, self.key, "RS256", {"kid": "1"})
