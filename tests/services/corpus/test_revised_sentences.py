"""What verdicts taught of a sentence follows it into a text that says the same but for a figure."""

from collections.abc import Mapping
from typing import Any

import pytest

from engram.composition.container import Application
from engram.storage.corpus import collections
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


def replay_sentences_in(application: Application, collection: str, *sentences: int) -> None:
    """Make what verdicts taught of these sentences anew from the log."""
    target = state.collection_id(application, collection)
    with application.database.write() as writer:
        collections.lock_learning(writer, target, exclusive=True)
        application.corpus.replay_sentences(writer, target, sentences)


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
    assert recall(http, collection)[sentence] > revised
    assert_verified(application, collection)


def test_revoking_a_verdict_on_the_revised_text_leaves_what_the_earlier_text_says(
    application: Application, ingest: Ingest, http: TestClient, judged: tuple[str, int]
) -> None:
    collection, sentence = judged
    ingest({"id": "travel", "title": "Travel", "text": REVISED})
    before = state.list_learned(application, collection)
    episode = state.add_episode(application, collection, QUESTION, [sentence])
    later = state.judge(application, collection, episode, [sentence], wait=True).event.id
    application.learning.revocation.revoke(application.auth.access.scope(collection), later)
    assert state.list_learned(application, collection) == before
    assert_verified(application, collection)


@pytest.mark.parametrize("text", [REVISED, OLD], ids=["revised", "unchanged"])
def test_a_verdict_that_waited_teaches_the_text_that_it_judged(
    application: Application, ingest: Ingest, judged: tuple[str, int], text: str
) -> None:
    collection, sentence = judged
    episode = state.add_episode(application, collection, QUESTION, [sentence])
    waiting = state.judge(application, collection, episode, [sentence]).event
    ingest({"id": "travel", "title": "Travel", "text": text})
    application.learning.learner.apply_unless_busy(waiting.collection_id, [waiting.id])
    late = state.list_learned(application, collection)
    assert {row["revision"] for row in late["memory_audit"]} == {0}
    replay_sentences_in(application, collection, sentence)
    assert state.list_learned(application, collection) == late
    (support,) = late["question_support"]
    full = 1 - (1 - 2 / 3) * (1 - 0.335 / (0.335 + 0.5))  # two verdicts in full
    assert (support["support"] < full - 1e-3) == (text == REVISED)
    assert_verified(application, collection)


def test_a_sentence_that_only_a_waiting_verdict_names_is_revised_too(
    application: Application, ingest: Ingest, http: TestClient, collection: str
) -> None:
    ingest({"id": "travel", "title": "Travel", "text": OLD}, {"id": "desk", "title": "Desk", "text": "Ask Ana."})
    sentence = next(iter(state.sentences(application, collection, "travel").values()))
    episode = state.add_episode(application, collection, QUESTION, [sentence])
    waiting = state.judge(application, collection, episode, [sentence]).event
    ingest({"id": "travel", "title": "Travel", "text": REVISED})
    application.learning.learner.apply_unless_busy(waiting.collection_id, [waiting.id])
    assert list(recall(http, collection)) == [sentence]
    (listed,) = application.learning.verdict_listing.page(
        application.auth.access.scope(collection), status=None, after=0, limit=9, stale=True
    )
    assert 0.8 < listed.sentences[0].likeness < 1
    assert_verified(application, collection)


@pytest.mark.parametrize("text", [REVISED, OLD], ids=["revised", "unchanged"])
def test_judges_of_different_texts_do_not_contradict_each_other(
    application: Application, ingest: Ingest, collection: str, text: str
) -> None:
    ingest({"id": "travel", "title": "Travel", "text": OLD}, {"id": "desk", "title": "Desk", "text": "Ask Ana."})
    sentence = next(iter(state.sentences(application, collection, "travel").values()))
    first = state.add_episode(application, collection, QUESTION, [sentence])
    state.judge(application, collection, first, [sentence], wait=True, judge="ana")
    ingest({"id": "travel", "title": "Travel", "text": text})
    second = state.add_episode(application, collection, QUESTION, [sentence])
    receipt = state.judge(
        application, collection, second, rejected=[sentence], partial=True, wait=True, judge="ben"
    )
    capped = {one.capped for one in receipt.changes or () if one.channel == "recall"}
    assert capped == {text == OLD}
    assert_verified(application, collection)
    ingest({"id": "travel", "title": "Travel", "text": OTHER})
    assert_verified(application, collection)


def test_a_verification_sees_how_alike_texts_are(
    application: Application, ingest: Ingest, judged: tuple[str, int]
) -> None:
    collection, _ = judged
    ingest({"id": "travel", "title": "Travel", "text": REVISED})
    with application.database.write() as writer:
        writer.execute(
            """
            UPDATE sentence SET revision_likeness = '{0.8}'
            WHERE collection_id = %(c)s AND revised_at IS NOT NULL
            """,
            {"c": state.collection_id(application, collection)},
        )
    report = application.revocation.verification.verify(application.auth.access.scope(collection))
    assert {one.table for one in report.differences} >= {"question_support", "memory_audit"}


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
