"""Odd headers, query strings and paths: refused with a problem document, whatever the route."""

import re
from typing import Any

import pytest

from tests.api.conftest import Counts
from tests.api.operations import BODIES, DOCUMENT, UNKNOWN_ID, WALKED, assert_refused, url
from tests.conftest import Ingest
from tests.support.strict_client import TestClient

VERDICT = {"query_id": str(UNKNOWN_ID)}
KEYS = [None, b"", b" ", b"a b", b"\xe4", b"a\tb", b"x" * 201, "ключ".encode()]


@pytest.mark.parametrize("key", KEYS)
def test_an_odd_idempotency_key_is_refused(key: bytes | None, http: TestClient, counts: Counts) -> None:
    before = counts()
    headers: dict[str, Any] = {} if key is None else {"idempotency-key": key}
    response = http.post("/feedback", json=VERDICT, headers=headers)
    assert_refused(response)
    if key is not None:
        response = http.post("/passages", json=BODIES["/passages"], headers=headers)
        assert_refused(response)
    assert counts() == before


ODD_QUERIES = [
    *(f"collection={name}" for name in ("", "%00", "%ff", "%ED%A0%80", "a%0A", "a%2Fb", "x" * 101, "%20")),
    *(f"limit={number}" for number in ("0", "-1", "1001", "9" * 30, "9" * 5_000, "1e400", "NaN", "x", "", "1.5")),
    *(f"after={number}" for number in ("-1", "9" * 30, "%00", "%ff", "1e400", "9" * 5_000, "a b")),
    *(f"status={status}" for status in ("", "done", "%00", "%ff")),
    *(f"errors_after={number}" for number in ("-1", "9" * 30, "x", "NaN")),
    *(f"errors_limit={number}" for number in ("0", "1001", "9" * 5_000)),
]


@pytest.mark.routes
@pytest.mark.parametrize("odd", ODD_QUERIES, ids=lambda odd: odd[:30])
def test_odd_query_parameters_never_fail(odd: str, http: TestClient, counts: Counts) -> None:
    """Where the parameter is known it is refused; a route that knows it not answers as without it.

    Such a route is asked with the first of the odd values only.
    """
    before = counts()
    name = odd.partition("=")[0]
    is_first = odd == next(one for one in ODD_QUERIES if one.startswith(f"{name}="))
    for method, path in WALKED:
        known = {parameter["name"] for parameter in parameters(method, path)}
        if name not in known and not is_first:
            continue
        body = {"json": BODIES[path] | {"query": ""}} if path in BODIES else {}
        response = http.request(method, f"{url(path)}?{odd}", headers={"idempotency-key": "k"}, **body)
        assert response.status_code < 500, (method, path)
        if response.status_code >= 400:
            assert_refused(response)
        if path in NAMING_PATHS and response.status_code in {200, 404}:
            continue  # their "after" is a name, and a number can be one
        assert name not in known or response.status_code == 422, (method, path, response.text)
    assert counts() == before


def parameters(method: str, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DOCUMENT["paths"][path][method.lower()].get("parameters", [])
    return [parameter for parameter in found if parameter["in"] == "query"]


NAMING_PATHS = {
    "/collections",
    "/documents",
    "/v1/vector_stores",
    "/collections/{name}/judges",
    "/collections/{name}/passages",
}
NAMING_PATHS |= {"/collections/{name}/pulls/{source}"}
UNMADE_PATHS = {f"/api/v1/knowledge/{{name}}/{step}" for step in ("sync/diff", "dirs/create")}
ODD_IDS = ["%00", "%FF", "%ED%A0%80", "%F0%9F%98%80", "x" * 600, "9" * 30, "9" * 5_000, "0", "-1", "1e400", "NaN"]
ODD_IDS += ["%20", "%0A", "%zz", "..%2F..%2Fetc", "{}", "null", "%25", "7e3ed2c9-0480-41e6-a"]


@pytest.mark.routes
@pytest.mark.parametrize("odd", ODD_IDS, ids=lambda odd: odd[:20])
def test_odd_path_parameters_are_refused(odd: str, http: TestClient, counts: Counts) -> None:
    before = counts()
    for method, path in WALKED:
        if "{" in path:
            target = re.sub(r"\{\w+\}", lambda _: odd, path)
            response = http.request(method, target, json=BODIES.get(path), headers={"idempotency-key": "k"})
            if path in UNMADE_PATHS and response.status_code == 200:
                continue  # a name can be odd, and the first upload makes the collection
            assert_refused(response)
            assert response.status_code in {404, 422}
    assert counts() == before


@pytest.mark.parametrize(
    "path", ["/console", "/quer", "/query/", "/Query", "/%00", "/%ff", "//", "/passages/", "/a" * 5_000]
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PUT", "PATCH", "OPTIONS"])
def test_an_unknown_path_is_refused(method: str, path: str, http: TestClient) -> None:
    response = http.request(method, f"http://testserver{path}", follow_redirects=False)
    assert_refused(response)
    assert response.status_code in {404, 405, 415, 422}


def test_a_line_break_belongs_to_the_id(http: TestClient, curie: str, ingest: Ingest) -> None:
    ingest({"id": "two\nlines", "text": "Warsaw lies on the Vistula."}, into=curie)
    assert http.get("/passages/two%0Alines", params={"collection": curie}).json()["id"] == "two\nlines"
    for method in ("GET", "DELETE"):
        assert http.request(method, "/passages/curie%0A", params={"collection": curie}).status_code == 404
    assert http.get("/passages/curie%0A/key", params={"collection": curie}).status_code == 404
    assert http.get("/passages/curie", params={"collection": curie}).status_code == 200
