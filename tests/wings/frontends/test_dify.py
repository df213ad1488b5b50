"""Dify's external knowledge API, asked as Dify's own service asks it."""

import json
import math
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import httpx
import pytest

from engram.composition.container import Application
from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from engram.wings.frontends.services.answer_reference import AnswerReference
from tests.api.conftest import Counts, Variant
from tests.api.operations import assert_problem
from tests.conftest import Ingest
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"
DATED = (
    {
        "id": "a",
        "text": "Titan has lakes of methane.",
        "metadata": {"topic": "space", "year": 1655, "tags": ["moon"]},
    },
    {
        "id": "b",
        "text": "Enceladus has jets of ice.",
        "metadata": {"topic": "space", "year": 1789, "day": "2024-05-01"},
    },
    {"id": "c", "text": "Warsaw lies on the Vistula.", "metadata": {"topic": "cities", "empty": "", "number": "7"}},
)


def body(collection: str, query: str = QUESTION, **more: Any) -> dict[str, Any]:
    """What Dify posts."""
    setting = {"top_k": more.pop("top_k", 3), "score_threshold": more.pop("score_threshold", 0.0)}
    return {"retrieval_setting": setting, "query": query, "knowledge_id": collection, **more}


def records(http: TestClient, *given: Any, **more: Any) -> list[dict[str, Any]]:
    answer = http.post(
        "/retrieval", content=json.dumps(body(*given, **more)), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["records"]
    return found


def test_records_have_the_shape_that_dify_reads(http: TestClient, curie: str) -> None:
    found = records(http, curie)
    assert found[0]["title"] == "Marie Curie"
    assert found[0]["content"].startswith("Marie Curie was born in Warsaw")
    scores = [record["score"] for record in found]
    assert len(found) == 3
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert all(isinstance(record["metadata"], dict) for record in found)


def test_each_score_is_the_probability_of_its_own_passage(http: TestClient, curie: str) -> None:
    ranked = http.post("/query", json={"query": QUESTION, "collection": curie, "top_k": 3}).json()["passages"]
    log_odds = [math.log(record["score"] / (1 - record["score"])) for record in records(http, curie)]
    shifts = [own["score"] - odds for own, odds in zip(ranked, log_odds, strict=True)]
    assert shifts == pytest.approx([shifts[0]] * 3), "a ranking score is log odds but for one constant"


def test_a_title_is_never_null(http: TestClient, ingest: Ingest, collection: str) -> None:
    ingest(*DATED)
    assert {record["title"] for record in records(http, collection, "Titan?")} == {"a", "b", "c"}


def test_the_document_id_leads_a_verdict_to_its_passage(
    http: TestClient, application: Application, curie: str
) -> None:
    found = records(http, curie)[0]
    reference = AnswerReference.parse(found["metadata"]["document_id"])
    assert reference == AnswerReference(UUID(found["metadata"]["query_id"]), found["metadata"]["passage_id"])
    kept = application.answers.episodes.read(application.auth.access.scope(curie), reference.query_id)
    assert reference.passage_id in {passage["passage_id"] for passage in kept.answer["passages"]}
    verdict = {
        "query_id": str(reference.query_id),
        "collection": curie,
        "supporting_passages": [reference.passage_id],
        "wait": True,
    }
    told = http.post("/feedback", json=verdict, headers={"idempotency-key": str(reference)})
    assert told.json()["status"] in {"applied", "pending"}, told.text


def test_a_threshold_cuts_the_answer_off(http: TestClient, curie: str) -> None:
    whole = records(http, curie)
    least = whole[1]["score"]
    assert [record["content"] for record in records(http, curie, score_threshold=least)] == [
        record["content"] for record in whole[:2]
    ]
    assert records(http, curie, score_threshold=1.0) == []


def test_an_empty_answer_is_an_empty_list(http: TestClient, curie: str) -> None:
    nothing = {"conditions": [{"name": "topic", "comparison_operator": "is", "value": "none"}]}
    assert records(http, curie, metadata_condition=nothing) == []


@pytest.mark.parametrize(
    ("name", "operator", "value", "expected"),
    [
        ("topic", "is", "space", "ab"),
        (["topic"], "is", "space", "ab"),
        (["other", "topic"], "is", "cities", "c"),
        (["other", "topic"], "is not", "cities", "ab"),
        ("topic", "is not", "space", "c"),
        ("topic", "contains", "pac", "ab"),
        ("topic", "not contains", "pac", "c"),
        ("topic", "start with", "ci", "c"),
        ("topic", "end with", "ace", "ab"),
        ("tags", "contains", "moo", "a"),
        ("topic", "in", ["cities", "x"], "c"),
        ("topic", "not in", ["cities", "x"], "ab"),
        ("topic", "in", "cities", "c"),
        ("topic", "in", "cities, x", "c"),
        ("topic", "not in", "cities,x", "ab"),
        ("year", "in", "1655,1789", "ab"),
        ("year", "=", "1655", "a"),
        ("year", "=", 1655, "a"),
        ("number", "=", 7, ""),
        ("number", "=", "7", "c"),
        ("year", "≠", "1655", "bc"),
        ("year", ">", "1700", "b"),
        ("year", "<", 1700.5, "a"),
        ("year", "≥", 1655, "ab"),
        ("year", "≤", "1789", "ab"),
        ("day", "before", "2024-06", "b"),
        ("day", "after", "2024-06", ""),
        ("year", "after", 1700, "b"),
        ("day", "after", 1_714_000_000, "b"),
        ("day", "before", "1714000000", ""),
        ("day", "before", 1_714_608_000, "b"),
        ("empty", "empty", None, "abc"),
        ("day", "not empty", None, "b"),
        ("day", "null", None, "ac"),
        ("day", "not null", "ignored", "b"),
    ],
)
def test_metadata_conditions(
    http: TestClient, ingest: Ingest, collection: str, name: Any, operator: str, value: Any, expected: str
) -> None:
    ingest(*DATED)
    one = {"name": name, "comparison_operator": operator} | ({} if value is None else {"value": value})
    found = records(http, collection, "Titan?", metadata_condition={"logical_operator": "and", "conditions": [one]})
    assert sorted(record["metadata"]["passage_id"] for record in found) == sorted(expected)


def test_conditions_are_joined_by_and_or_or(http: TestClient, ingest: Ingest, collection: str) -> None:
    ingest(*DATED)
    conditions = [
        {"name": "topic", "comparison_operator": "is", "value": "space"},
        {"name": "year", "comparison_operator": ">", "value": 1700},
    ]
    expected: list[tuple[Mapping[str, Any], str]] = [
        ({"conditions": conditions}, "b"),
        ({"logical_operator": "or", "conditions": conditions}, "ab"),
        ({"conditions": []}, "abc"),
        ({"conditions": None}, "abc"),
        ({"logical_operator": None, "conditions": None}, "abc"),
        ({}, "abc"),
    ]
    for condition, ids in expected:
        found = records(http, collection, "Titan?", metadata_condition=condition)
        assert sorted(record["metadata"]["passage_id"] for record in found) == sorted(ids)


def test_the_episode_tells_the_conditions(http: TestClient, ingest: Ingest, collection: str) -> None:
    ingest(*DATED)
    condition = {"conditions": [{"name": "topic", "comparison_operator": "is", "value": "space"}]}
    found = records(http, collection, "Titan?", metadata_condition=condition)[0]
    kept = http.get(f"/queries/{found['metadata']['query_id']}").json()
    assert kept["filter"] == {"$and": [{"topic": {"$in": ["space"]}}]}
    assert found["metadata"]["passage_id"] in {hit["passage_id"] for hit in kept["passages"]}


def assert_refused(answer: httpx.Response, status: int, code: int) -> None:
    assert answer.status_code == status, answer.text
    assert_problem(answer)
    assert answer.json()["error_code"] == code
    assert answer.json()["error_msg"] == answer.json()["detail"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"query": ""},
        {"query": 5},
        {"query": "\x00"},
        {"knowledge_id": "not a name"},
        {"retrieval_setting": {}},
        {"retrieval_setting": {"top_k": 0, "score_threshold": 0.5}},
        {"retrieval_setting": {"top_k": 101}},
        {"retrieval_setting": {"top_k": 3, "score_threshold": 1.5}},
        {"retrieval_setting": {"top_k": 3, "score_threshold": "0.5"}},
        {"metadata_condition": []},
        {"metadata_condition": {"logical_operator": "xor", "conditions": []}},
        *(
            {"metadata_condition": {"conditions": [one]}}
            for one in (
                {"comparison_operator": "is", "value": "x"},
                {"name": "a", "value": "x"},
                {"name": "a", "comparison_operator": "like", "value": "x"},
                {"name": "a", "comparison_operator": "is"},
                {"name": "a", "comparison_operator": "is", "value": ["x", "y"]},
                {"name": "a", "comparison_operator": "in", "value": []},
                {"name": "a", "comparison_operator": "in", "value": ", "},
                {"name": "a", "comparison_operator": "contains", "value": 5},
                {"name": "a", "comparison_operator": "contains", "value": ""},
                {"name": "a", "comparison_operator": ">", "value": "many"},
                {"name": "a", "comparison_operator": "is", "value": {"x": 1}},
                {"name": "a", "comparison_operator": "is", "value": "\x00"},
                {"name": [], "comparison_operator": "is", "value": "x"},
                {"name": "", "comparison_operator": "is", "value": "x"},
            )
        ),
    ],
    ids=lambda wrong: json.dumps(wrong)[:60],
)
def test_bad_requests_get_an_error_that_dify_shows(
    http: TestClient, curie: str, counts: Counts, wrong: dict[str, Any]
) -> None:
    before = counts()
    assert_refused(http.post("/retrieval", json=body(curie) | wrong), 422, 422)
    assert counts() == before


def test_an_unknown_knowledge_base_has_an_error_code_of_its_own(http: TestClient, counts: Counts) -> None:
    before = counts()
    assert_refused(http.post("/retrieval", json=body("nowhere")), 404, 2001)
    assert counts() == before


def test_other_failures_have_the_status_as_their_code(
    http: TestClient, without_postgres: TestClient, curie: str
) -> None:
    assert_refused(http.post("/retrieval", content=b"{"), 415, 415)
    assert_refused(http.post("/retrieval", content=b"{", headers={"content-type": "application/json"}), 400, 400)
    assert_refused(http.get("/retrieval"), 405, 405)
    assert_refused(without_postgres.post("/retrieval", json=body(curie)), 503, 503)


def test_keys(variant: Variant, curie: str) -> None:
    """Dify registers a service only if a post without a body is not answered by 403, 404 or 502."""
    guarded = variant(access="keys")
    client = TestClient(create_app(guarded), raise_server_exceptions=False)

    def post_retrieval(header: str | None, **more: Any) -> httpx.Response:
        headers = {} if header is None else {"Authorization": header}
        return client.post("/retrieval", headers=headers, **more)

    right = {"json": body(curie)}
    for header, code in (
        (None, 1001), ("Basic YTpi", 1001), ("Bearer", 1001), ("Bearer ", 1001), ("Bearer engram_x", 1002),
    ):  # fmt: skip
        assert_refused(post_retrieval(header, **right), 403, code)
    made = guarded.auth.access_keys.make(LOCAL, AccessKeyRequest(name="reader", scopes={curie: ["read"]}))
    assert_refused(post_retrieval(f"Bearer {made.key}", **right), 403, 1002)
    made = guarded.auth.access_keys.make(LOCAL, AccessKeyRequest(name="dify", scopes={curie: ["query"]}))
    assert post_retrieval(f"Bearer {made.key}", **right).status_code == 200
    assert post_retrieval(f"Bearer {made.key}").status_code not in {403, 404, 502}
    assert_refused(post_retrieval(f"Bearer {made.key}", json=body("elsewhere")), 404, 2001)


def test_of_a_pasted_log_the_beginning_and_the_end_are_read(http: TestClient, curie: str) -> None:
    log = f"{QUESTION}\n" + "connection reset by peer\n" * 5_000
    answer = http.post("/retrieval", json=body(curie, log)).json()
    assert answer["records"][0]["title"] == "Marie Curie"
    assert [warning["type"] for warning in answer["warnings"]] == ["question-shortened"]


@pytest.mark.parametrize("value", [{}, [{}], [None], {"a": 1}])
def test_a_refused_value_is_named_as_the_caller_wrote_it(http: TestClient, curie: str, value: Any) -> None:
    condition = {"conditions": [{"name": "topic", "comparison_operator": "is", "value": value}]}
    sent = {"query": "Titan?", "knowledge_id": curie, "metadata_condition": condition}
    sent |= {"retrieval_setting": {"top_k": 3, "score_threshold": 0.0}}
    refused = http.post("/retrieval", json=sent)
    assert refused.status_code == 422
    assert "conditions.0.value" in refused.json()["detail"]
    assert not any(word in refused.text for word in ("function", "0x", "partial"))
