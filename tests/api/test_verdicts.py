"""Which verdicts are taken, and that one which is not leaves nothing behind."""

from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from tests.api.conftest import Counts
from tests.api.operations import assert_refused
from tests.support.strict_client import TestClient

BORN = {"passage_id": "curie", "text": "Marie Curie was born in Warsaw in 1867."}


@pytest.fixture
def judge(http: TestClient, curie: str) -> Any:
    """Judges one answered question."""
    query = http.post("/query", json={"collection": curie, "query": "Where was Marie Curie born?"}).json()

    def send(key: str | None = None, **verdict: Any) -> Any:
        body = {"collection": curie, "query_id": query["query_id"], "wait": True} | verdict
        return http.post("/feedback", json=body, headers={"idempotency-key": key or str(uuid4())})

    return send


@pytest.fixture
def born(http: TestClient, curie: str) -> int:
    """The id of the sentence that answers it."""
    sentences = http.get("/passages/curie", params={"collection": curie}).json()["sentences"]
    identity: int = next(row["sentence_id"] for row in sentences if row["text"] == BORN["text"])
    return identity


def test_naming_a_sentence_twice_counts_once(judge: Any, born: int) -> None:
    response = judge(supporting=[born, born, BORN, {"sentence_id": born}], missed=[born])
    assert response.status_code == 200, response.text
    changes = response.json()["changes"]
    assert [change["channel"] for change in changes].count("recall") == 1
    assert {change["sentence_id"] for change in changes} == {born}


def test_whole_numbers_may_be_written_with_a_point(judge: Any, born: int, http: TestClient, curie: str) -> None:
    assert judge(supporting=[float(born)]).status_code == 200
    body = {"collection": curie, "query": "Where was Marie Curie born?", "top_k": 2.0, "max_hops": 1.0}
    answer = http.post("/query", json=body).json()
    assert (len(answer["passages"]), answer["hops"]) == (2, 1)


def test_verdict_on_missing_sentence_is_refused(
    judge: Any, born: int, counts: Counts, application: Application, ingest: Any
) -> None:
    other = f"other-{uuid4().hex}"
    ingest({"id": "elsewhere", "text": "Nobody lives here."}, into=other)
    sentence = application.corpus.ingest.passage(application.auth.access.scope(other), "elsewhere")[1][0].id
    before = counts()
    wrong: list[Any] = [
        2**63 - 1,
        sentence,
        {"sentence_id": sentence},
        {"passage_id": "nowhere", "text": "x"},
        {"passage_id": "elsewhere", "text": "Nobody lives here."},
        BORN | {"text": "Marie Curie was born in Paris."},
    ]
    for name in ("supporting", "rejected", "missed"):
        for reference in wrong:
            response = judge(**{name: [reference]})
            assert response.status_code == 422, reference
            assert_refused(response)
    for missing in ({"query_id": str(uuid4())}, {"collection": other}, {"collection": "nowhere"}):
        response = judge(none_helped=True, **missing)
        assert response.status_code == 404
        assert_refused(response)
    assert counts() == before


def test_verdicts_are_listed_page_by_page(judge: Any, http: TestClient, curie: str) -> None:
    given = [judge().json()["feedback_id"] for _ in range(5)]
    seen: list[int] = []
    after: int | None = 0
    while after is not None:
        page = http.get("/feedback", params={"collection": curie, "after": after, "limit": 2}).json()
        seen += [event["feedback_id"] for event in page["feedback"]]
        after = page["next_after"]
    assert seen == given
    for status, expected in (("applied", given), ("pending", []), ("parked", [])):
        page = http.get("/feedback", params={"collection": curie, "status": status}).json()
        assert [event["feedback_id"] for event in page["feedback"]] == expected


def test_verdict_changes_only_named_sentences(judge: Any, born: int) -> None:
    for body in ({}, {"supporting": []}, {"none_helped": False}, {"retrieval_success": False}):
        assert judge(**body).json()["changes"] == []
    for body in ({"supporting": [born]}, {"supporting": [born], "complete": False}, {"rejected": [born]}):
        assert {change["sentence_id"] for change in judge(**body).json()["changes"]} == {born}


def test_a_complete_verdict_that_names_nothing_that_helped_has_to_say_so(
    judge: Any, born: int, counts: Counts
) -> None:
    """It would reject all that was activated, and is more likely a slip."""
    before = counts()
    for body in ({"complete": True}, {"rejected": [born], "complete": True}):
        response = judge(**body)
        assert response.status_code == 422
        assert "none_helped" in response.json()["detail"]
    for contradiction in ({"supporting": [born]}, {"missed": [born]}):
        assert judge(none_helped=True, **contradiction).status_code == 422
    assert counts() == before
    response = judge(none_helped=True, wait=True)
    assert response.status_code == 200
    assert {change["target"] for change in response.json()["changes"]} == {0}
    assert judge("named", rejected=[born], none_helped=True).status_code == 200


def test_silence_about_what_was_hardly_looked_at_says_little(
    judge: Any, born: int, http: TestClient, curie: str
) -> None:
    rejected = [{"sentence_id": born, "examined": 0.25}]
    first = judge("silent", rejected=rejected).json()
    assert {change["observation_noise"] for change in first["changes"]} == {4.0}  # 1 / 0.25
    verdict = http.get(f"/feedback/{first['feedback_id']}", params={"collection": curie}).json()["verdict"]
    assert (verdict["rejects"], verdict["examined"]) == ([born], [0.25])
    assert judge("silent", rejected=rejected).json()["feedback_id"] == first["feedback_id"]
    other = judge("silent", rejected=[{**BORN, "examined": 0.5}])
    assert other.status_code == 422, "the key stands for another verdict"
    again = judge(rejected=[{**BORN, "examined": 0.5}, {"sentence_id": born, "examined": 0.1}]).json()
    assert {change["observation_noise"] for change in again["changes"]} == {2.0}, "the most that was said counts"


def test_examination_probability_is_refused_for_supporting_sentences(judge: Any, born: int, counts: Counts) -> None:
    before = counts()
    for name in ("supporting", "missed"):
        for reference in ({"sentence_id": born, "examined": 0.5}, {**BORN, "examined": 0.5}):
            response = judge(**{name: [reference]})
            assert response.status_code == 422
            assert "examined goes with rejected" in response.json()["detail"]
    assert counts() == before
    assert judge(supporting=[{"sentence_id": born, "examined": 1}]).status_code == 200
