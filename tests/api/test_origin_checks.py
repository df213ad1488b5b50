"""Requests that a browser sends for somebody else's page, and names that are not ours."""

import re

import pytest

from engram.api import documentation
from engram.api.origin_checks import AllowedOrigins
from engram.runtime.api_process import create_app
from tests.api.conftest import Counts, Variant
from tests.api.operations import WALKED, assert_problem, url
from tests.support.strict_client import TestClient

FOREIGN = "https://evil.example"
WRITES = [(method, path) for method, path in WALKED if method != "GET"]


@pytest.mark.parametrize(
    ("host", "ours"),
    [
        ("localhost", True),
        ("LOCALHOST:8000", True),
        ("localhost.", True),
        ("127.0.0.1:8000", True),
        ("[::1]:8000", True),
        ("10.1.2.3", True),
        ("engram.example.org:443", True),
        ("evil.example", False),
        ("localhost.evil.example", False),
        ("evil.example:127.0.0.1", False),
        ("evil.example@localhost", False),
        ("localhost@evil.example", False),
        ("[::1", False),
        ("", False),
    ],
)
def test_a_name_is_ours_or_not(host: str, ours: bool) -> None:
    assert AllowedOrigins.from_settings("127.0.0.1", "engram.example.org", "").calls(host) is ours
    assert AllowedOrigins.from_settings("127.0.0.1", "*", "").calls(host)


def test_a_host_that_is_not_ours_is_refused(http: TestClient) -> None:
    for path in ("/healthz", "/collections", "/docs", "/nowhere"):
        answer = http.get(path, headers={"host": "rebound.example:8000"})
        assert answer.status_code == 421
        assert_problem(answer)
    assert http.get("/healthz", headers={"host": "localhost:8000"}).status_code == 200


@pytest.mark.routes
@pytest.mark.parametrize("origin", [FOREIGN, "null", "http://testserver.evil.example", "http://testserver:81"])
def test_foreign_origin_cannot_write(origin: str, http: TestClient, counts: Counts) -> None:
    before = counts()
    plain = {"content": b"{}", "headers": {"origin": origin, "content-type": "text/plain"}}
    for method, path in WRITES:
        for request in ({"headers": {"origin": origin}}, plain):
            answer = http.request(method, url(path), **request)
            assert answer.status_code == 403, (method, path)
            assert answer.json()["type"] == "urn:engram:problem:foreign-origin"
            assert "access-control-allow-origin" not in answer.headers
    assert counts() == before


@pytest.mark.routes
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_a_body_that_is_not_json_is_refused(kind: str, http: TestClient) -> None:
    for method, path in WRITES:
        answer = http.request(method, url(path), content=b"{}", headers={"content-type": kind})
        assert answer.status_code == 415, (method, path)
        assert_problem(answer)


def test_a_page_of_our_own_may_write(http: TestClient, curie: str) -> None:
    asked = {"collection": curie, "query": "Where was Marie Curie born?"}
    assert http.post("/query", json=asked, headers={"origin": "http://testserver"}).status_code == 200
    assert http.get("/collections", headers={"origin": FOREIGN}).status_code == 200


def test_an_origin_that_is_allowed_may_write_and_read(variant: Variant, curie: str) -> None:
    app = create_app(variant(cors_origins="https://app.example.org/, https://other.example.org"))
    client = TestClient(app, raise_server_exceptions=False)
    ours = {"origin": "https://app.example.org"}
    preflight = client.options(
        "/query",
        headers=ours
        | {
            "access-control-request-method": "POST",
            "access-control-request-headers": "content-type,idempotency-key",
        },
    )
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == "https://app.example.org"
    asked = {"collection": curie, "query": "Where was Marie Curie born?"}
    answer = client.post("/query", json=asked, headers=ours)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "https://app.example.org")
    assert client.post("/query", json=asked, headers={"origin": FOREIGN}).status_code == 403


def test_every_answer_is_marked_as_none_for_pages(
    http: TestClient, without_postgres: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [
        http.get("/healthz"),
        http.get("/nowhere"),
        http.post("/query", content=b"{", headers={"content-type": "application/json"}),
        http.get("/healthz", headers={"host": "evil.example"}),
        without_postgres.get("/collections"),
    ]
    health = http.app.state.services.maintenance.health  # type: ignore[attr-defined]
    monkeypatch.setattr(type(health), "readiness", lambda _: 1 / 0)
    answers.append(http.get("/readyz"))
    assert [answer.status_code for answer in answers] == [200, 404, 400, 421, 503, 500]
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert http.get("/docs").headers["content-security-policy"] == documentation.POLICY


def test_the_documentation_loads_nothing_from_elsewhere(http: TestClient) -> None:
    page = http.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(loaded) == 4
    for path in loaded:
        answer = http.get(f"/{path}")
        assert (answer.status_code, answer.headers["x-content-type-options"]) == (200, "nosniff"), path
    assert "openapi.json" in http.get("/docs/start.js").text
    assert http.get("/docs/../secret").status_code == 404
    assert_problem(http.get("/docs/other.js"))
