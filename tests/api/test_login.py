"""Login at an identity provider, by the cookie that the pages then ask with."""

import time
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from pydantic import SecretStr

from engram.api.login_cookies import PAGE_HEADER
from engram.composition.container import Application
from engram.context.errors import ConfigurationError
from engram.runtime.api_process import create_app
from engram.services.auth.failed_attempts import BURST
from engram.services.auth.login import LEAST_SECONDS
from tests.api.conftest import Variant
from tests.support.identity_provider import AUDIENCE, IdentityProvider
from tests.support.strict_client import TestClient

PAGE = {PAGE_HEADER: "1"}
CALLBACK = "http://testserver/login/callback"


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider.serve({"*": ["query"]}) as served:
        served.person = "ana"
        yield served


@pytest.fixture(scope="module")
def guarded(lasting: Variant, provider: IdentityProvider) -> Application:
    """A service that takes keys and logins."""
    built = lasting(access="keys", jwt_issuer=provider.url, login_client=SecretStr("pages secret"))
    assert built.models.provider_keys is not None
    assert built.models.provider_keys.wait(30)
    return built


@pytest.fixture
def browser(guarded: Application, provider: IdentityProvider) -> TestClient:
    """A browser that has no cookie yet."""
    provider.claims = {}
    return TestClient(create_app(guarded), follow_redirects=False)


def ask_provider(browser: TestClient, to: str = "/search") -> str:
    """Begin a login; the address at which the provider sends the browser back."""
    begun = browser.get("/login", params={"to": to})
    assert begun.status_code == 303
    return httpx.get(begun.headers["location"]).headers["location"]


def test_a_login_leads_back_and_ends(browser: TestClient, provider: IdentityProvider) -> None:
    assert browser.get("/access/me", headers=PAGE).status_code == 401
    answer = browser.get(ask_provider(browser, "/search?q=Who%3F&c=docs"))
    assert (answer.status_code, answer.headers["location"]) == (303, "/search?q=Who%3F&c=docs")
    session = next(one for one in answer.headers.get_list("set-cookie") if one.startswith("engram-session="))
    attributes = {part.strip().lower() for part in session.split(";")[1:]}
    assert {"httponly", "samesite=lax", "path=/"} <= attributes
    assert browser.get("/access/me", headers=PAGE).json()["principals"] == ["user:ana"]
    key = {"authorization": "Bearer engram_no"}
    assert browser.get("/access/me", headers=PAGE | key).status_code == 401, "a key goes before the login"
    assert browser.delete("/login").status_code == 204
    assert browser.get("/access/me", headers=PAGE).status_code == 401


def test_a_login_does_not_count_for_other_pages(browser: TestClient) -> None:
    """A form or an image of another site has the browser send the cookie at most, and never the header."""
    browser.get(ask_provider(browser))
    assert browser.cookies["engram-session"]
    assert browser.get("/access/me").status_code == 401


def test_the_provider_is_asked_for_a_code_with_pkce(browser: TestClient) -> None:
    asked = parse_qs(urlsplit(browser.get("/login").headers["location"]).query)
    expected = {"client_id": "pages", "response_type": "code", "scope": "openid", "code_challenge_method": "S256"}
    assert {name: asked[name] for name in expected} == {name: [value] for name, value in expected.items()}
    assert asked["redirect_uri"] == [CALLBACK]
    assert asked.keys() == expected.keys() | {"state", "nonce", "code_challenge", "redirect_uri"}


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "of-another"}, {"aud": "another"}, {"aud": ["pages", "another"]}, {"azp": "another"}, {"exp": 1},
        {"iss": "https://evil.example"}, {"engram": {}},
    ],
    ids=str,
)  # fmt: skip
def test_other_tokens_are_refused(
    browser: TestClient, provider: IdentityProvider, claims: Mapping[str, Any]
) -> None:
    provider.claims = dict(claims)
    answer = browser.get(ask_provider(browser))
    assert answer.status_code == 401
    assert "<h1>Login failed</h1>" in answer.text
    assert "engram-session" not in browser.cookies


@pytest.mark.parametrize("answer", ["state=other&code={code}", "code={code}", "state={state}&error=access_denied"])
def test_other_answers_are_refused(browser: TestClient, answer: str) -> None:
    query = parse_qs(urlsplit(ask_provider(browser)).query)
    filled = answer.format(state=query["state"][0], code=query["code"][0])
    assert browser.get(f"{CALLBACK}?{filled}").status_code == 401
    assert "engram-session" not in browser.cookies


def test_a_token_of_a_login_counts_in_the_cookie_alone(browser: TestClient, provider: IdentityProvider) -> None:
    provider.claims = {"aud": ["pages", "another"], "azp": "pages"}
    browser.get(ask_provider(browser))
    token = browser.cookies["engram-session"]
    assert browser.get("/access/me", headers=PAGE).status_code == 200
    assert browser.get("/access/me", headers={"authorization": f"Bearer {token}"}).status_code == 401


def test_a_bearer_token_is_no_login(lasting: Variant, provider: IdentityProvider) -> None:
    both = lasting(
        access="keys", jwt_issuer=provider.url, jwt_audience=AUDIENCE, login_client=SecretStr("pages secret")
    )
    assert both.models.provider_keys is not None
    assert both.models.provider_keys.wait(30)
    client, token = TestClient(create_app(both)), provider.sign("ana", [])
    assert client.get("/access/me", headers={"authorization": f"Bearer {token}"}).status_code == 200
    client.cookies["engram-session"] = token
    assert client.get("/access/me", headers=PAGE).status_code == 401


def test_failed_answers_are_bounded(browser: TestClient, provider: IdentityProvider) -> None:
    """Whoever makes up attempts has the provider asked about each."""
    browser.cookies["engram-login"] = "state=s&nonce=n&verifier=v"
    answers = [browser.get(f"{CALLBACK}?state=other") for _ in range(int(BURST) + 10)]
    assert {answer.status_code for answer in answers[:40]} == {401}
    assert answers[-1].status_code == 429


def test_a_login_counts_in_its_browser_and_once(browser: TestClient, guarded: Application) -> None:
    address = ask_provider(browser)
    other = TestClient(create_app(guarded), follow_redirects=False)
    assert other.get(address).status_code == 401
    assert browser.get(address).status_code == 303
    assert browser.get(address).status_code == 401


@pytest.mark.parametrize(
    "to",
    ["https://evil.example", "//evil.example", "/\\evil.example", "/search/../x", "/search@evil.example", "search",
     "/console/x.js", "/search?q=" + "a" * 2_000, "/search?q=\r\nset-cookie: a=b", "javascript:alert(1)", ""],
)  # fmt: skip
def test_a_login_leads_to_no_other_place(browser: TestClient, to: str) -> None:
    assert browser.get(ask_provider(browser, to)).headers["location"] == "/search"


@pytest.mark.parametrize("to", ["/", "/#/why/1?c=docs", "/search?q=a#b"])
def test_a_login_leads_back_to_both_pages(browser: TestClient, to: str) -> None:
    assert browser.get(ask_provider(browser, to)).headers["location"] == to


def test_a_token_that_ends_at_once_is_refused(browser: TestClient, provider: IdentityProvider) -> None:
    provider.claims = {"exp": time.time() + LEAST_SECONDS - 1}
    answer = browser.get(ask_provider(browser))
    assert answer.status_code == 401
    assert "has to hold for 60 seconds" in answer.text


def test_a_token_that_no_cookie_holds_is_refused(browser: TestClient, provider: IdentityProvider) -> None:
    provider.claims = {"groups": [f"group-{at}" for at in range(400)]}
    answer = browser.get(ask_provider(browser))
    assert answer.status_code == 401
    assert "fewer groups" in answer.text


def test_cookies_of_an_https_address_are_its_own(lasting: Variant, provider: IdentityProvider) -> None:
    https = lasting(
        access="keys",
        jwt_issuer=provider.url,
        login_client=SecretStr("pages"),
        url="HTTPS://engram.example.org/docs",
    )
    assert https.models.provider_keys is not None
    assert https.models.provider_keys.wait(30)
    begun = TestClient(create_app(https), follow_redirects=False).get("/login")
    cookie = begun.headers["set-cookie"]
    assert cookie.startswith("__Host-engram-login=")
    assert "; Secure" in cookie
    asked = parse_qs(urlsplit(begun.headers["location"]).query)
    assert asked["redirect_uri"] == ["HTTPS://engram.example.org/docs/login/callback"]


@pytest.mark.parametrize(
    ("host", "url", "is_refused"),
    [
        ("0.0.0.0", "http://engram.example.org", True),
        ("0.0.0.0", None, True),
        ("0.0.0.0", "HTTPS://engram.example.org", False),
        ("0.0.0.0", "http://localhost:8000", False),
        ("127.0.0.1", None, False),
    ],
)
def test_logins_off_loopback_take_https(variant: Variant, host: str, url: str | None, is_refused: bool) -> None:
    startup = variant(host=host, url=url, login_client=SecretStr("pages")).startup
    with pytest.raises(ConfigurationError, match="https address as ENGRAM_URL") if is_refused else nullcontext():
        startup.check_settings()


def test_a_provider_that_is_away_is_said_so(variant: Variant) -> None:
    away = variant(jwt_issuer="http://127.0.0.1:1", login_client=SecretStr("pages"))
    answer = TestClient(create_app(away), follow_redirects=False).get("/login")
    assert answer.status_code == 503
    assert "out of reach" in answer.text


@pytest.mark.parametrize("kind", ["authorization", "token"])
@pytest.mark.parametrize("address", [None, 7, "http://id.example.org/authorize"])
def test_a_provider_without_an_address_to_log_in_at_is_said_so(
    browser: TestClient, guarded: Application, monkeypatch: pytest.MonkeyPatch, kind: str, address: object
) -> None:
    come_back = ask_provider(browser)
    keys = guarded.models.provider_keys
    assert keys is not None
    monkeypatch.setattr(keys, "metadata", {**keys.metadata, f"{kind}_endpoint": address})
    for answer in (browser.get("/login"), browser.get(come_back)):
        assert answer.status_code == 503
        assert "no https addresses" in answer.text


def test_pages_say_whether_people_can_log_in(browser: TestClient, http: TestClient) -> None:
    for path in ("/", "/search"):
        assert "<html data-login" in browser.get(path).text
        assert "<html data-login" not in http.get(path).text
    assert http.get("/login", follow_redirects=False).status_code == 404


def test_opening_a_page_is_no_failed_attempt(guarded: Application) -> None:
    client = TestClient(create_app(guarded))
    assert {client.get("/access/me", headers=PAGE).status_code for _ in range(60)} == {401}
