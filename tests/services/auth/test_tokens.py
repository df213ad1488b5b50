"""Tokens of an identity provider, against one that serves its keys over HTTP."""

import base64
import json
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from engram.composition.container import Application
from engram.context.errors import ConfigurationError, UnauthorizedError, UnavailableError
from engram.providers import jwt_keys
from engram.providers.jwt_keys import (
    FRESH_SECONDS,
    KEPT_SECONDS,
    METADATA_PATH,
    RETRY_SECONDS,
    UNKNOWN_SECONDS,
    ProviderKeys,
)
from engram.providers.jwt_tokens import Tokens
from engram.services.auth.authentication import Authentication
from engram.services.auth.scope import LOCAL
from tests.support.processes import eventually

AUDIENCE = "engram"


class Provider:
    """An identity provider: a key pair, and over HTTP its metadata and the public half."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = "one"
        self.go = threading.Event()
        self.go.set()
        self.resets = False
        self.redirects_after_seconds: float | None = None
        self.moved_keys = ""
        """Address to which that of the keys redirects, if any."""
        self.asked = 0
        """How often its metadata were."""
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.asked += self.path == METADATA_PATH
                provider.go.wait(60)
                if provider.resets:
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.connection.close()
                    return
                if provider.redirects_after_seconds is not None:
                    time.sleep(provider.redirects_after_seconds)
                    self.send_response(302)
                    self.send_header("location", self.path)
                    self.send_header("content-length", "0")
                    self.end_headers()
                    return
                if provider.moved_keys and self.path == "/keys":
                    self.send_response(302)
                    self.send_header("location", provider.moved_keys)
                    self.send_header("content-length", "0")
                    self.end_headers()
                    return
                metadata = {"issuer": provider.issuer, "jwks_uri": provider.keys_url}
                body = json.dumps(metadata).encode() if self.path == METADATA_PATH else provider.encode_keys()
                self.send_response(200)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.issuer, self.keys_url = self.url, f"{self.url}/keys"
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def encode_keys(self) -> bytes:
        """The JWK set."""
        numbers = self.key.public_key().public_numbers()
        point = {"x": _text(numbers.x), "y": _text(numbers.y)}
        keys = [{"kty": "EC", "crv": "P-256", "kid": self.name, "use": "sig", **point}]
        return json.dumps({"keys": keys}).encode()

    def rotate(self, name: str) -> None:
        """Publish another key instead."""
        self.key, self.name = ec.generate_private_key(ec.SECP256R1()), name

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def token(self, key: Any = None, **claims: Any) -> str:
        """A token that holds for a minute and may query ``docs``, but for these claims."""
        body = {"iss": self.issuer, "aud": AUDIENCE, "sub": "ada|17", "exp": time.time() + 60}
        body |= {"engram": {"tenant": "local", "scopes": {"docs": ["query"]}}} | claims
        return jwt.encode(body, key or self.key, algorithm="ES256", headers={"kid": self.name})


def _text(number: int) -> str:
    return base64.urlsafe_b64encode(number.to_bytes(32, "big")).decode().rstrip("=")


def can_find(keys: ProviderKeys, name: str) -> bool:
    """Whether there is such a key now."""
    try:
        return keys.find(name).key_id == name
    except (UnavailableError, UnauthorizedError):
        return False


@pytest.fixture
def provider() -> Iterator[Provider]:
    found = Provider()
    yield found
    found.server.shutdown()
    found.server.server_close()


@pytest.fixture
def authentication(application: Application, provider: Provider) -> Authentication:
    tokens = Tokens(ProviderKeys(provider.issuer), AUDIENCE)
    assert tokens.keys.wait(30)
    return Authentication(application.database, needed=True, remember_seconds=60, tokens=tokens)


def test_a_token_makes_a_principal_of_its_subject(authentication: Authentication, provider: Provider) -> None:
    one = authentication.find_principal(f"Bearer {provider.token()}")
    assert (one.tenant, one.grants.as_json(), one.trusted) == ("local", {"docs": ["query"]}, False)
    assert one.name.startswith("oidc:")
    assert one.judges_as == one.name
    assert authentication.find_principal(f"Bearer {provider.token(nonce='other')}") == one
    assert authentication.find_principal(f"Bearer {provider.token(sub='eve')}").name != one.name
    allowed = {"tenant": "local", "scopes": {"*": ["judge"]}, "judge": "Editor", "trusted": True, "llm_tokens": 9}
    judge = authentication.find_principal(f"Bearer {provider.token(engram=allowed)}")
    assert (judge.judges_as, judge.trusted, judge.llm_tokens) == ("oidc:editor", True, 9)


def test_a_token_reads_as_its_subject_and_groups(authentication: Authentication, provider: Provider) -> None:
    def find_names(**claims: Any) -> tuple[str, ...]:
        return authentication.find_principal(f"Bearer {provider.token(sub='ana', **claims)}").reads_as

    assert find_names() == ("user:ana",)
    assert find_names(groups=["hr", "it", 7, "a" * 200]) == ("group:hr", "group:it", "user:ana")
    assert find_names(groups="hr") == ("group:hr", "user:ana")
    unstorable = ["a\0", "\0", "\x1f", "a\x1f", "\ud800", "a\ud800b", ""]
    assert find_names(groups=["hr", *unstorable]) == ("group:hr", "user:ana")


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example"},
        {"aud": "another"},
        {"exp": 1},
        {"exp": None},
        {"sub": ""},
        {"sub": " "},
        {"engram": None},
        {"engram": {}},
        {"engram": {"tenant": "local", "scopes": ["query"]}},
        {"engram": {"tenant": "local", "scopes": {"docs": ["write"]}}},
        {"engram": {"tenant": "local", "scopes": {"not a name": ["query"]}}},
        {"engram": {"scopes": {"docs": ["query"]}}},
        {"engram": {"tenant": None, "scopes": {"docs": ["query"]}}},
        {"engram": {"scopes": {"docs": ["query"]}, "tenant": "no-such-tenant"}},
    ],
    ids=str,
)
def test_token_with_invalid_claims_is_refused(
    authentication: Authentication, provider: Provider, claims: Mapping[str, Any]
) -> None:
    token = provider.token(**{name: value for name, value in claims.items() if value is not None})
    if None in claims.values():
        body = jwt.decode(token, options={"verify_signature": False})
        body.pop(next(iter(claims)))
        token = jwt.encode(body, provider.key, algorithm="ES256", headers={"kid": "one"})
    with pytest.raises(UnauthorizedError):
        authentication.find_principal(f"Bearer {token}")


def test_only_the_providers_key_signs(authentication: Authentication, provider: Provider) -> None:
    forged = provider.token(key=ec.generate_private_key(ec.SECP256R1()))
    claims = {"iss": provider.issuer, "aud": AUDIENCE, "sub": "x", "exp": time.time() + 60}
    shared = jwt.encode(claims, "x" * 32, "HS256")
    none = ".".join([*provider.token().split(".")[:2], ""])
    for token in (forged, shared, none, "a.b.c"):
        with pytest.raises(UnauthorizedError):
            authentication.find_principal(f"Bearer {token}")


def test_a_provider_that_is_away_is_no_mistake_of_the_caller(application: Application, provider: Provider) -> None:
    tokens = Tokens(ProviderKeys("http://127.0.0.1:1"), AUDIENCE)
    assert tokens.keys.wait(30)
    away = Authentication(application.database, needed=True, remember_seconds=60, tokens=tokens)
    with pytest.raises(UnavailableError, match="out of reach"):
        away.find_principal(f"Bearer {provider.token()}")


@pytest.mark.parametrize("claim", ["llm_tokens", "exp"])
def test_a_number_without_bounds_is_no_claim(
    authentication: Authentication, provider: Provider, claim: str
) -> None:
    """JSON has 1e400, which is infinite here."""
    own = {"tenant": "local", "scopes": {"docs": ["query"]}}
    claims = {"engram": own | {"llm_tokens": 123456789}} if claim == "llm_tokens" else {"exp": 123456789}
    head, body, _ = provider.token(**claims).split(".")
    written = base64.urlsafe_b64decode(body + "==").replace(b"123456789", b"1e400")
    signed = f"{head}.{base64.urlsafe_b64encode(written).decode().rstrip('=')}"
    signature = jwt.algorithms.ECAlgorithm(jwt.algorithms.ECAlgorithm.SHA256).sign(signed.encode(), provider.key)
    token = f"{signed}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"
    with pytest.raises(UnauthorizedError):
        authentication.find_principal(f"Bearer {token}")


def test_a_reset_connection_is_an_outage(application: Application, provider: Provider) -> None:
    provider.resets = True
    tokens = Tokens(ProviderKeys(provider.issuer), AUDIENCE)
    assert tokens.keys.wait(30)
    with pytest.raises(UnavailableError, match="out of reach"):
        tokens.claims(provider.token())


def test_metadata_of_another_issuer_do_not_count(provider: Provider) -> None:
    provider.issuer = "https://evil.example"
    keys = ProviderKeys(provider.url)
    assert keys.wait(30)
    assert keys.metadata == {}
    assert not can_find(keys, "one")


def test_hanging_identity_provider_does_not_block_requests(provider: Provider) -> None:
    """Neither for the first keys nor for new ones: the request thread asks no network."""
    provider.go.clear()
    tokens = Tokens(ProviderKeys(provider.issuer), AUDIENCE)
    with pytest.raises(UnavailableError):
        tokens.claims(provider.token())
    assert not tokens.keys.wait(0.0)
    provider.go.set()
    assert tokens.keys.wait(30)
    assert tokens.claims(provider.token())["sub"] == "ada|17"


def test_old_keys_serve_while_new_ones_are_fetched(provider: Provider) -> None:
    now = [1_000.0]
    keys = ProviderKeys(provider.url, lambda: now[0])
    assert keys.wait(30)
    provider.go.clear()
    now[0] += FRESH_SECONDS + 1
    assert keys.find("one").key_id == "one"
    eventually(lambda: provider.asked == 2)
    assert keys.find("one").key_id == "one"
    provider.go.set()


def test_keys_of_a_provider_that_is_away_serve_for_a_day(provider: Provider) -> None:
    now = [1_000.0]
    keys = ProviderKeys(provider.url, lambda: now[0])
    assert keys.wait(30)
    provider.resets = True
    now[0] += KEPT_SECONDS - 1
    assert keys.find("one").key_id == "one"
    eventually(lambda: provider.asked == 2)
    now[0] += 2
    with pytest.raises(UnavailableError):
        keys.find("one")


def test_failures_are_remembered(provider: Provider) -> None:
    provider.resets = True
    now = [1_000.0]
    keys = ProviderKeys(provider.url, lambda: now[0])
    assert keys.wait(30)
    for _ in range(20):
        with pytest.raises(UnavailableError):
            keys.find("one")
    assert provider.asked == 1
    provider.resets = False
    now[0] += RETRY_SECONDS
    with pytest.raises(UnavailableError):
        keys.find("one")
    eventually(lambda: can_find(keys, "one"))
    assert provider.asked == 2


def test_redirects_do_not_make_a_fetch_longer(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jwt_keys, "WHOLE_TIMEOUT_SECONDS", 0.5)
    provider.redirects_after_seconds = 0.3
    keys = ProviderKeys(provider.url)
    assert keys.wait(30)
    assert provider.asked <= 2
    assert not can_find(keys, "one")


def test_a_new_key_is_fetched_once_and_made_up_ones_seldom(provider: Provider) -> None:
    now = [1_000.0]
    keys = ProviderKeys(provider.url, lambda: now[0])
    assert keys.wait(30)
    for name in ("no", "none"):
        with pytest.raises(UnauthorizedError):
            keys.find(name)
    provider.rotate("two")
    now[0] += UNKNOWN_SECONDS
    with pytest.raises((UnavailableError, UnauthorizedError)):
        keys.find("two")
    eventually(lambda: can_find(keys, "two"))
    with pytest.raises(UnauthorizedError):
        keys.find("one")
    assert provider.asked == 2


def test_without_a_provider_a_token_is_no_key(application: Application, provider: Provider) -> None:
    needed = Authentication(application.database, needed=True, remember_seconds=60)
    with pytest.raises(UnauthorizedError, match="no access key"):
        needed.find_principal(f"Bearer {provider.token()}")
    open_to_all = Authentication(application.database, needed=False, remember_seconds=60)
    assert open_to_all.find_principal(f"Bearer {provider.token()}") is LOCAL


@pytest.mark.parametrize("issuer", ["file:///etc/passwd", "http://id.example.org", "https://", "http://[", ""])
def test_an_issuer_is_an_https_address(issuer: str) -> None:
    with pytest.raises(ConfigurationError, match="must be an https address"):
        ProviderKeys(issuer)


@pytest.mark.parametrize("where", ["keys_url", "moved_keys"])
def test_no_keys_come_in_clear_text_from_elsewhere(provider: Provider, where: str) -> None:
    setattr(provider, where, provider.url.replace("127.0.0.1", "0.0.0.0") + "/elsewhere")  # which answers as well
    keys = ProviderKeys(provider.url)
    assert keys.wait(30)
    assert keys.metadata == {}
    assert not can_find(keys, "one")
