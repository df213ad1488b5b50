"""Tokens of an identity provider, against one that serves its keys over HTTP."""

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from engram.context.errors import ConfigurationError, UnauthorizedError, UnavailableError
from engram.providers.jwt_tokens import Tokens
from engram.runtime.container import Application
from engram.services.auth.authentication import Authentication
from engram.services.auth.scope import LOCAL

ISSUER, AUDIENCE = "https://id.example.org", "engram"


class Provider:
    """An identity provider: a key pair, and the public half over HTTP."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        numbers = self.key.public_key().public_numbers()
        point = {"x": _text(numbers.x), "y": _text(numbers.y)}
        body = json.dumps({"keys": [{"kty": "EC", "crv": "P-256", "kid": "one", "use": "sig", **point}]}).encode()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/keys"

    def token(self, key: Any = None, **claims: Any) -> str:
        """A token that holds for a minute and may query ``docs``, but for these claims."""
        body = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ada|17", "exp": time.time() + 60}
        body |= {"engram": {"scopes": {"docs": ["query"]}}} | claims
        return jwt.encode(body, key or self.key, algorithm="ES256", headers={"kid": "one"})


def _text(number: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes(32, "big")).decode().rstrip("=")


@pytest.fixture
def provider() -> Iterator[Provider]:
    found = Provider()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def authentication(application: Application, provider: Provider) -> Authentication:
    tokens = Tokens(ISSUER, AUDIENCE, provider.url)
    return Authentication(application.database, needed=True, remember_seconds=60, tokens=tokens)


def test_a_token_makes_a_principal_of_its_subject(authentication: Authentication, provider: Provider) -> None:
    one = authentication.principal(f"Bearer {provider.token()}")
    assert (one.tenant, one.grants.as_json(), one.trusted) == ("local", {"docs": ["query"]}, False)
    assert one.name.startswith("oidc:")
    assert one.judges_as == one.name
    assert authentication.principal(f"Bearer {provider.token(nonce='other')}") == one
    assert authentication.principal(f"Bearer {provider.token(sub='eve')}").name != one.name
    allowed = {"scopes": {"*": ["judge"]}, "judge": "Editor", "trusted": True, "llm_tokens": 9}
    judge = authentication.principal(f"Bearer {provider.token(engram=allowed)}")
    assert (judge.judges_as, judge.trusted, judge.llm_tokens) == ("oidc:editor", True, 9)


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example"},
        {"aud": "another"},
        {"exp": 1},
        {"exp": None},
        {"engram": None},
        {"engram": {}},
        {"engram": {"scopes": ["query"]}},
        {"engram": {"scopes": {"docs": ["write"]}}},
        {"engram": {"scopes": {"not a name": ["query"]}}},
        {"engram": {"scopes": {"docs": ["query"]}, "tenant": "no-such-tenant"}},
    ],
    ids=str,
)
def test_what_does_not_hold_is_refused(
    authentication: Authentication, provider: Provider, claims: Mapping[str, Any]
) -> None:
    token = provider.token(**{name: value for name, value in claims.items() if value is not None})
    if None in claims.values():
        body = jwt.decode(token, options={"verify_signature": False})
        body.pop(next(iter(claims)))
        token = jwt.encode(body, provider.key, algorithm="ES256", headers={"kid": "one"})
    with pytest.raises(UnauthorizedError):
        authentication.principal(f"Bearer {token}")


def test_only_the_providers_key_signs(authentication: Authentication, provider: Provider) -> None:
    forged = provider.token(key=ec.generate_private_key(ec.SECP256R1()))
    shared = jwt.encode({"iss": ISSUER, "aud": AUDIENCE, "sub": "x", "exp": time.time() + 60}, "x" * 32, "HS256")
    none = ".".join([*provider.token().split(".")[:2], ""])
    for token in (forged, shared, none, "a.b.c"):
        with pytest.raises(UnauthorizedError):
            authentication.principal(f"Bearer {token}")


def test_a_provider_that_is_away_is_no_mistake_of_the_caller(application: Application, provider: Provider) -> None:
    tokens = Tokens(ISSUER, AUDIENCE, "http://127.0.0.1:1/keys")
    away = Authentication(application.database, needed=True, remember_seconds=60, tokens=tokens)
    with pytest.raises(UnavailableError, match="out of reach"):
        away.principal(f"Bearer {provider.token()}")


def test_without_a_provider_a_token_is_no_key(application: Application, provider: Provider) -> None:
    needed = Authentication(application.database, needed=True, remember_seconds=60)
    with pytest.raises(UnauthorizedError, match="no access key"):
        needed.principal(f"Bearer {provider.token()}")
    open_to_all = Authentication(application.database, needed=False, remember_seconds=60)
    assert open_to_all.principal(f"Bearer {provider.token()}") is LOCAL
    with pytest.raises(ConfigurationError, match="must begin with"):
        Tokens(ISSUER, AUDIENCE, "file:///etc/passwd")
