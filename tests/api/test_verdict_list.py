"""The list of verdicts: each with its question and what it names, for those who may see it."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient

from engram.api.verdict.schemas import NamedSentenceOut
from engram.core.auth.access_keys import ADMIN
from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from engram.services.judges.verdict_listing import MOST_SENTENCES
from tests.api.conftest import Variant
from tests.api.operations import assert_refused

QUESTION = "Where was Marie Curie born?"
BORN = "Marie Curie was born in Warsaw in 1867."
KeyedClient = Callable[..., TestClient]


def ask(client: TestClient, collection: str, question: str = QUESTION) -> dict[str, Any]:
    body = {"collection": collection, "query": question, "include": ["sentences"]}
    asked: dict[str, Any] = client.post("/query", json=body).raise_for_status().json()
    return asked


def judge(client: TestClient, answer: dict[str, Any], **verdict: Any) -> int:
    body = {"collection": answer["collection"], "query_id": answer["query_id"], "wait": True} | verdict
    sent = client.post("/feedback", json=body, headers={"idempotency-key": str(uuid4())}).raise_for_status()
    feedback_id: int = sent.json()["feedback_id"]
    return feedback_id


def list_verdicts(client: TestClient, collection: str, **filters: Any) -> list[dict[str, Any]]:
    answer = client.get("/feedback", params={"collection": collection} | filters).raise_for_status()
    rows: list[dict[str, Any]] = answer.json()["feedback"]
    return rows


def texts(row: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {(one["role"], one["passage_id"], one["text"]) for one in row["sentences"]}


@pytest.fixture
def keyed(variant: Variant) -> KeyedClient:
    """Clients with keys of their own."""
    application = variant(access="keys")
    app = create_app(application)

    def client(name: str, scopes: dict[str, list[str]]) -> TestClient:
        made = application.auth.access_keys.make(LOCAL, AccessKeyRequest(name=name, scopes=scopes), LOCAL.name)
        return TestClient(app, headers={"authorization": f"Bearer {made.key}"})

    return client


def test_a_verdict_shows_its_question_and_its_sentences(http: TestClient, curie: str) -> None:
    answer = ask(http, curie)
    judge(
        http,
        answer,
        supporting=[{"passage_id": "curie", "text": BORN}],
        missed=[{"passage_id": "vistula", "text": "The Vistula flows into the Baltic Sea."}],
        rejected=[{"passage_id": "tokyo", "text": "Tokyo is the capital of Japan."}],
    )
    (row,) = list_verdicts(http, curie)
    assert (row["question"], row["rating"], row["reason"], row["sentences_cut"]) == (QUESTION, None, None, False)
    assert texts(row) == {
        ("supported", "curie", BORN),
        ("missed", "vistula", "The Vistula flows into the Baltic Sea."),
        ("rejected", "tokyo", "Tokyo is the capital of Japan."),
    }
    assert {one["title"] for one in row["sentences"]} == {"Marie Curie", "Vistula", "Tokyo"}


def test_a_rating_and_a_supported_passage_are_shown_as_such(http: TestClient, curie: str) -> None:
    answer = ask(http, curie)
    judge(http, answer, rating="down", reason="missing")
    judge(http, answer, supporting_passages=["curie"])
    rating, passage = list_verdicts(http, curie)
    assert (rating["rating"], rating["reason"], rating["sentences"]) == ("down", "missing", [])
    assert (passage["rating"], passage["supporting_passages"]) == (None, ["curie"])
    assert {one["role"] for one in passage["sentences"]} == {"likely"}


def test_verdicts_on_one_answer_are_listed_alone(http: TestClient, curie: str) -> None:
    first, second = ask(http, curie), ask(http, curie)
    judge(http, first, rating="up")
    of_second = [judge(http, second, rating="up"), judge(http, second, rating=None)]
    rows = list_verdicts(http, curie, query_id=second["query_id"])
    assert [row["feedback_id"] for row in rows] == of_second
    assert [(row["rating"], row["status"]) for row in rows] == [("up", "revoked"), ("withdrawn", "applied")]
    backwards = list_verdicts(http, curie, query_id=second["query_id"], before=of_second[1])
    assert [row["feedback_id"] for row in backwards] == of_second[:1]
    assert list_verdicts(http, curie, query_id=str(uuid4())) == []
    refused: Any = http.get("/feedback", params={"collection": curie, "query_id": "no-id"})
    assert refused.status_code == 422
    assert_refused(refused)


def test_a_deleted_sentence_has_no_text(http: TestClient, curie: str) -> None:
    judge(
        http, ask(http, curie), supporting=[{"passage_id": "curie", "text": BORN}], supporting_passages=["warsaw"]
    )
    for passage in ("curie", "warsaw"):
        http.delete(f"/passages/{passage}", params={"collection": curie}).raise_for_status()
    (row,) = list_verdicts(http, curie)
    assert row["question"] == QUESTION
    assert row["supporting_passages"] == []
    assert {(one["passage_id"], one["title"], one["text"]) for one in row["sentences"]} <= {(None, None, None)}


def test_a_long_verdict_is_cut(http: TestClient, curie: str, ingest: Any) -> None:
    ingest({"id": "long", "text": " ".join(f"Marie Curie wrote letter {n}." for n in range(MOST_SENTENCES + 5))})
    sentences = http.get("/passages/long", params={"collection": curie}).json()["sentences"]
    ids = [one["sentence_id"] for one in sentences]
    assert len(ids) > MOST_SENTENCES
    judge(http, ask(http, curie), rejected=ids)
    (row,) = list_verdicts(http, curie)
    assert row["sentences_cut"]
    assert [one["sentence_id"] for one in row["sentences"]] == sorted(ids)[:MOST_SENTENCES]


def test_key_that_may_only_judge_reads_no_texts(keyed: KeyedClient, curie: str) -> None:
    asker, blind = keyed("asker", {curie: ["query"]}), keyed("blind", {curie: ["judge"]})
    sighted, auditor = keyed("sighted", {curie: ["judge", "read"]}), keyed("auditor", {curie: ["judge", "audit"]})
    answer = ask(asker, curie)
    support = {"supporting": [{"passage_id": "curie", "text": BORN}]}
    for client in (blind, sighted, auditor):
        judge(client, answer, **support)
    (of_blind,) = list_verdicts(blind, curie)
    assert of_blind["question"] is None, "another one asked it"
    assert [(one["role"], one["text"], one["passage_id"]) for one in of_blind["sentences"]] == [
        ("supported", None, None)
    ]
    (of_sighted,) = list_verdicts(sighted, curie)
    assert of_sighted["question"] is None
    assert texts(of_sighted) == {("supported", "curie", BORN)}
    assert [(row["question"], texts(row)) for row in list_verdicts(auditor, curie)] == [
        (QUESTION, {("supported", "curie", BORN)})
    ] * 3


def test_own_question_is_shown(keyed: KeyedClient, curie: str) -> None:
    client = keyed("one", {curie: ["query", "judge"]})
    judge(client, ask(client, curie), rating="up")
    (row,) = list_verdicts(client, curie)
    assert row["question"] == QUESTION
    assert row["sentences"]
    for one in row["sentences"]:
        NamedSentenceOut.model_validate(one)
    other = keyed("other", {"*": [ADMIN]})
    assert len(list_verdicts(other, curie)) == 1
