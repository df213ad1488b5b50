"""What cannot be carried out is refused with a problem document and leaves nothing behind."""

import json
from typing import Any

import pytest

from tests.api.conftest import Counts
from tests.api.operations import BODIES, METHODS, UNKNOWN_ID, WALKED, assert_refused, url, well_formed
from tests.support.strict_client import TestClient

JSON_TYPE = {"content-type": "application/json"}
PASSAGE = {"id": "p", "text": "Warsaw lies on the Vistula."}
VERDICT = {"query_id": str(UNKNOWN_ID)}
NESTED = "[" * 100_000
SURROGATE = "\ud800"
ENDLESS = "x" * 600_000
TEXTS = ["", "   ", "\n\t", "\u200b \u2060", "a\x00b", SURROGATE, f"a{SURROGATE}b", ENDLESS]
NOT_TEXTS: list[Any] = [None, 1, 1.5, True, [], {}, ["text"], float("nan"), float("inf")]
NOT_INTEGERS: list[Any] = [0, -1, 101, 2**63, 10**400, 1.5, 1e300, float("nan"), float("inf"), "5", True, [], {}]
NOT_IDS: list[Any] = [0, -1, 2**63, 10**400, 1.5, True, "1", None, [1], {}, float("nan"), {"sentence_id": True}]
NOT_OBJECTS: list[Any] = [1, "text", True, [], [{}], float("nan")]
NOT_STORABLE: list[Any] = [
    {"a\x00": 1},
    {SURROGATE: 1},
    {"a": {"b": [SURROGATE]}},
    {"a": "\x00"},
    {"a": float("nan")},
    {"a": [float("-inf")]},
    {str(number): number for number in range(1_001)},
    {"a": json.loads("[" * 30 + "]" * 30)},
]
NOT_NAMES: list[Any] = ["", " ", "-a", ".a", "a b", "a/b", "ä", "a\n", "a\x00", SURROGATE, "a" * 101, 1, None, {}]


def cases(**fields: list[Any]) -> list[tuple[str, Any]]:
    return [(name.replace("__", "."), value) for name, values in fields.items() for value in values]


def change_body(body: dict[str, Any], field: str, value: Any) -> bytes:
    """The body with ``a.b`` set to the value, as JSON with NaN and lone surrogates kept."""
    body = json.loads(json.dumps(body))
    *parents, last = field.split(".")
    target: Any = body
    for parent in parents:
        target = target[int(parent) if isinstance(target, list) else parent]
    target[int(last) if isinstance(target, list) else last] = value
    return json.dumps(body).encode("ascii")


QUERY_CASES = cases(
    query=TEXTS + NOT_TEXTS,
    collection=NOT_NAMES,
    top_k=[*NOT_INTEGERS, None],
    max_hops=[11, *NOT_INTEGERS],
    arm=[None, 1, "off", []],
    arm__memory=["on", "", None, 1, "\x00", SURROGATE],
    arm__profile=["ours", None, 2, SURROGATE],
    arm__strategy=["", "sparse", "Dense", "dense\x00", None, 1, ["dense"], {}, SURROGATE],
    arm__unknown=[1],
    filter=NOT_OBJECTS + NOT_STORABLE,
    time_constraint=["a\x00", SURROGATE, "x" * 501, 1, [], {}, float("nan")],
    stop_rule=["", "maybe", 1, SURROGATE],
    unit=[*TEXTS, "x" * 201, 1, True, [], {}],
    include=["trace", ["everything"], [1], [SURROGATE], ["trace"] * 11, {}, None],
    expansions=[None, {}, "x", [1], ["x"], [{}], [None], [{"method": "m", "text": "t"}] * 21],
    expansions__0__method=[*TEXTS, "x" * 101, 1, None],
    expansions__0__text=[*TEXTS, 1, None, []],
    expansions__0__unknown=[1],
    unknown=[1, None],
)
NAMED_SENTENCE = {"passage_id": "p", "text": "t"}
FEEDBACK_CASES = cases(
    query_id=["", "x", "\x00", SURROGATE, 1, None, [], "0" * 31, float("nan"), str(UNKNOWN_ID) + "0"],
    collection=NOT_NAMES,
    supporting=[None, 1, "1", {}, [1] * 1_001],
    supporting__0=[
        *NOT_IDS,
        NAMED_SENTENCE | {"sentence_id": 1},
        {"passage_id": "p"},
        {"text": "t"},
        NAMED_SENTENCE | {"x": 1},
    ],
    supporting__0__text=[*TEXTS, 1, None],
    supporting__0__passage_id=[*TEXTS, 1, None, "x" * 513],
    rejected__0=NOT_IDS,
    missed__0=NOT_IDS,
    complete=[None, 1, "true", "yes", [], float("nan")],
    wait=[None, 0, "false"],
    retrieval_success=[1, "true", []],
    generation_success=[0, "no"],
    expansions=[None, {}, [1], ["x"], [{}], [{"method": "m", "text": "t"}] * 101],
    expansions__0__method=[*TEXTS, "x" * 101, 1, None],
    expansions__0__text=[*TEXTS, 1, None],
    expansions__0__unknown=[1],
    supporting_passages=[None, 1, "p", {}, ["p"] * 1_001],
    supporting_passages__0=[*TEXTS, 1, None, [], {}, "x" * 513],
    generation_score=[-0.1, 1.1, 10**400, float("nan"), float("inf"), "1", True, [], {}],
    judge=[*TEXTS, "x" * 201, 1, None, []],
    confidence=[0, 0.0, -0.5, 1.01, 10**400, 1e300, float("nan"), float("inf"), "1", True, None, []],
    unknown=[1, None],
)
FULL_QUERY = BODIES["/query"] | {"arm": {}, "expansions": [{"method": "m", "text": "t"}]}
FULL_VERDICT = VERDICT | {
    "supporting": [NAMED_SENTENCE],
    "rejected": [1],
    "missed": [2],
    "expansions": [{"method": "m", "text": "t"}],
    "supporting_passages": ["p"],
}
PASSAGE_CASES = cases(
    id=[*TEXTS, 1.5, None, [], "x" * 513],
    _id=["another"],
    title=["\x00", SURROGATE, "x" * 2_001, 1, [], {}],
    text=[*TEXTS, 1, None, []],
    metadata=[None, *NOT_OBJECTS, *NOT_STORABLE],
    metadata__sentences=[[1], [""], ["a", " "], [ENDLESS], ["x" * 20_000] * 26, [SURROGATE], ["\x00"], [None]],
    sentences=[[], [""], [ENDLESS], ["x" * 20_000] * 26, [" "], ["\x00"], [SURROGATE], [1], [None], "text", 1, {}],
    unknown=[1, None],
)
REKEY = "/collections/{name}/rekey"
REKEY_CASES = cases(
    key_building=["", "Title", "title ", "none", "title\x00", SURROGATE, None, 1, True, ["title"], {}],
    collection=["default"],
    unknown=[1, None],
)
SERVING = "/collections/{name}"
SERVING_CASES = cases(
    serving=["", "Shadow", "off", "live\x00", SURROGATE, 1, True, ["live"], {}],
    collection=["default"],
    unknown=[1, None],
)
REVOKE_CASES = cases(
    collection=NOT_NAMES,
    judge=[*TEXTS, "x" * 201, 1, True, [], {}],
    all=[True, 1, "true", None, [], {}],
    unknown=[1, None],
)
NOT_MOMENTS: list[Any] = [
    "1700000000",
    "-1700000000.5",
    "2026-05-01T00:00Z\n",
    "", "x", "2026-05-01", "2026-05-01T00:00:00", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00+14:00",
    "2026-05-01T00:00:00Z\x00", SURROGATE, 0, 1.5, 10**400, float("nan"), True, [], {},
]  # fmt: skip
REVOKE_CASES += [(field, value) for field in ("from", "to") for value in NOT_MOMENTS]
LIST_CASES = cases(passages=[None, [], {}, 1, "x", [PASSAGE] * 1_001, [1], [None], [[]]], unknown=[1])


def name_case(case: tuple[str, Any]) -> str:
    return f"{case[0]}={ascii(case[1])[:30]}"


def build_bodies(body: dict[str, Any], values: list[tuple[str, Any]], prefix: str = "") -> dict[str, bytes]:
    """The bodies with a wrong value each, by its name."""
    return {name_case((field, value)): change_body(body, prefix + field, value) for field, value in values}


BODY_CASES = [
    ("/query", build_bodies(FULL_QUERY, QUERY_CASES)),
    ("/feedback", build_bodies(FULL_VERDICT, FEEDBACK_CASES)),
    ("/passages", build_bodies({"passages": [PASSAGE | {"metadata": {}}]}, PASSAGE_CASES, "passages.0.")),
    ("/passages", build_bodies({}, LIST_CASES)),
    ("/feedback/revoke", build_bodies({"judge": "nobody"}, REVOKE_CASES)),
    ("/feedback/revoke", build_bodies({}, [("all", False), ("judge", None), ("from", None)])),
    (REKEY, build_bodies(BODIES[REKEY], REKEY_CASES)),
    (SERVING, build_bodies({"serving": "live"}, SERVING_CASES)),
]


@pytest.mark.parametrize(("path", "bodies"), BODY_CASES, ids=[path for path, _ in BODY_CASES])
def test_a_wrong_value_is_refused(path: str, bodies: dict[str, bytes], http: TestClient, counts: Counts) -> None:
    before = counts()
    headers = JSON_TYPE | {"idempotency-key": "malformed"}
    for name, content in bodies.items():
        response = http.request(METHODS[path], url(path), content=content, headers=headers)
        assert response.status_code in {400, 404, 422}, (name, response.text)
        assert_refused(response)
    assert counts() == before


UNREADABLE = [b"", b" ", b"{", b"[]", b"1", b"null", b'"x"', b"\xff\xfe", b'{"query": "\xff"}', b"{'query': 'x'}"]
UNREADABLE += [NESTED.encode(), b'{"query": ' + NESTED.encode(), b'{"a":' * 100_000, b"9" * 5_000, b"1e400", b"NaN"]
UNREADABLE += [
    b'{"query": "x"} {}',
    b'{"query": "x", "top_k": ' + b"9" * 5_000 + b"}",
    b"\x00",
    b'\xef\xbb\xbf{"a"',
]


WALKED_BODIES = [path for path in BODIES if (METHODS[path], path) in WALKED]
KINDS = ["", "text/plain", "application/xml", "multipart/form-data; boundary=x", "json", ";"]


@pytest.mark.routes
def test_an_unreadable_body_is_refused(http: TestClient, counts: Counts) -> None:
    before = counts()
    headers = JSON_TYPE | {"idempotency-key": "malformed"}
    for path in WALKED_BODIES:
        for content in UNREADABLE:
            response = http.request(METHODS[path], url(path), content=content, headers=headers)
            assert_refused(response)
            assert response.status_code in {400, 422}, (path, content[:20])
    assert counts() == before


@pytest.mark.routes
@pytest.mark.parametrize("kind", KINDS)
def test_another_content_type_is_refused(kind: str, http: TestClient, counts: Counts) -> None:
    before = counts()
    for path in WALKED_BODIES:
        headers = {"content-type": kind, "idempotency-key": "malformed"}
        response = http.request(METHODS[path], url(path), content=json.dumps(BODIES[path]), headers=headers)
        assert response.status_code == 415, path
        assert_refused(response)
    assert counts() == before


def test_a_compressed_body_is_refused(http: TestClient, counts: Counts) -> None:
    before = counts()
    headers = {"content-type": "application/x-ndjson", "content-encoding": "gzip"}
    response = http.post("/passages", content=b"{}", headers=headers)
    assert response.status_code == 415
    assert_refused(response)
    assert counts() == before


@pytest.mark.routes
@pytest.mark.parametrize("path", WALKED_BODIES)
def test_a_huge_body_is_refused_while_it_arrives(path: str, http: TestClient, counts: Counts) -> None:
    """Chunked, so that no length announces it."""
    before = counts()
    sent = (b" " * 2**20 for _ in range(66))
    where = well_formed("POST", path) if path == "/documents" else {"headers": JSON_TYPE}
    headers = where["headers"] | {"idempotency-key": "malformed"}
    response = http.request(METHODS[path], url(path), **(where | {"content": sent, "headers": headers}))
    assert response.status_code == 413
    assert_refused(response)
    assert counts() == before
