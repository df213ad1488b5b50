"""What verdicts taught of a sentence follows it into a text that says the same but for a figure."""

from collections.abc import Mapping
from typing import Any

import pytest

from engram.composition.container import Application
from tests.conftest import Ingest
from tests.support import state
from tests.support.strict_client import TestClient
from tests.support.undo import assert_verified

QUESTION = "How much may I spend on food when I am away?"
OLD = "The daily travel allowance is 32 EUR. Receipts are kept for two years."
REVISED = "The daily travel allowance is 33 EUR. Receipts are kept for two years."
OTHER = "Visitors sign in at the front desk. Receipts are kept for two years."


@pytest.fixture
def judged(application: Application, ingest: Ingest, collection: str) -> tuple[str, int]:
    """A collection whose first sentence one verdict supports for the question, and that sentence."""
    ingest({"id": "travel", "title": "Travel", "text": OLD}, {"id": "desk", "title": "Desk", "text": "Ask Ana."})
    sentence = next(iter(state.sentences(application, collection, "travel").values()))
    episode = state.add_episode(application, collection, QUESTION, [sentence])
    state.judge(application, collection, episode, [sentence], wait=True)
    return collection, sentence


def recall(http: TestClient, collection: str) -> Mapping[int, float]:
    """Sentence -> its recall probability for the question."""
    answer = http.post("/query", json={"query": QUESTION, "collection": collection, "include": ["trace"]}).json()
    recalled: list[dict[str, Any]] = answer["trace"]["recalled"]
    return {one["sentence_id"]: one["recall_probability"] for one in recalled}


def test_a_revised_sentence_is_recalled_a_little_less(
    application: Application, ingest: Ingest, http: TestClient, judged: tuple[str, int]
) -> None:
    collection, sentence = judged
    before = recall(http, collection)[sentence]
    ingest({"id": "travel", "title": "Travel", "text": REVISED})
    assert next(iter(state.sentences(application, collection, "travel"))) == REVISED.partition(" Receipts")[0]
    after = recall(http, collection)[sentence]
    assert 0.9 * before < after < before
    assert_verified(application, collection)


def test_a_verdict_on_the_revised_text_counts_in_full(
    application: Application, ingest: Ingest, http: TestClient, judged: tuple[str, int]
) -> None:
    collection, sentence = judged
    ingest({"id": "travel", "title": "Travel", "text": REVISED})
    revised = recall(http, collection)[sentence]
    episode = state.add_episode(application, collection, QUESTION, [sentence])
    state.judge(application, collection, episode, [sentence], wait=True)
    assert {row["likeness"] for row in state.rows(application, collection, "question_support")} == {1.0}
    assert recall(http, collection)[sentence] > revised
    assert_verified(application, collection)


def test_another_statement_in_its_place_inherits_nothing(
    application: Application, ingest: Ingest, http: TestClient, judged: tuple[str, int]
) -> None:
    collection, _ = judged
    ingest({"id": "travel", "title": "Travel", "text": OTHER})
    assert recall(http, collection) == {}
    assert state.rows(application, collection, "question_support") == []
    assert_verified(application, collection)


def test_a_revised_text_can_be_taken_back(
    application: Application, ingest: Ingest, http: TestClient, judged: tuple[str, int]
) -> None:
    collection, _ = judged
    ingest({"id": "travel", "title": "Travel", "text": REVISED})
    (event,) = state.event_statuses(application, collection)
    application.learning.revocation.revoke(application.auth.access.scope(collection), event)
    assert recall(http, collection) == {}
    assert_verified(application, collection)


def test_an_answer_of_before_teaches_nothing_of_the_revised_text(
    application: Application, ingest: Ingest, http: TestClient, judged: tuple[str, int]
) -> None:
    collection, sentence = judged
    late = state.add_episode(application, collection, QUESTION, [sentence])
    ingest({"id": "travel", "title": "Travel", "text": REVISED})
    body = {"collection": collection, "query_id": str(late), "supporting": [sentence]}
    refused = http.post("/feedback", json=body, headers={"idempotency-key": "late"})
    assert (refused.status_code, refused.json()["detail"].split(".")[0]) == (
        409,
        f"Sentence {sentence} has another text now than this answer showed",
    )


@pytest.mark.wing("published")
def test_a_time_memory_begins_as_the_revised_time(
    application: Application, ingest: Ingest, collection: str
) -> None:
    ingest({"id": "move", "title": "Move", "text": "The company moved to the new house in 2019. It is big."})
    sentence = next(iter(state.sentences(application, collection, "move").values()))
    episode = state.add_episode(application, collection, "Where was it in 2019?", [sentence], "in 2019")
    state.judge(application, collection, episode, [sentence], wait=True)
    ingest({"id": "move", "title": "Move", "text": "The company moved to the new house in 2021. It is big."})
    (row,) = [one for one in state.rows(application, collection, "sentence") if one["id"] == sentence]
    memories = {one["channel"]: one for one in state.rows(application, collection, "sentence_memory")}
    assert memories["time"]["time_expression_id"] == row["time_expression_id"]
    assert "2021" in row["text"]
    assert_verified(application, collection)


def test_verdicts_on_revised_and_on_lost_texts_are_listed(
    ingest: Ingest, http: TestClient, judged: tuple[str, int]
) -> None:
    collection, sentence = judged

    def list_stale() -> list[tuple[int, str | None, float]]:
        page = http.get("/feedback", params={"collection": collection, "stale": True}).json()["feedback"]
        return [(one["sentence_id"], one["text"], one["likeness"]) for event in page for one in event["sentences"]]

    assert list_stale() == []
    ingest({"id": "travel", "title": "Travel", "text": REVISED})
    ((named, text, likeness),) = list_stale()
    assert (named, text) == (sentence, REVISED.partition(" Receipts")[0])
    assert likeness == pytest.approx(72 / 74)
    ingest({"id": "travel", "title": "Travel", "text": OTHER})
    assert list_stale() == [(sentence, None, 1.0)]
