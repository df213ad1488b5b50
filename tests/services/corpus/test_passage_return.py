"""What verdicts taught of a removed passage is there again when the passage comes with an equal text."""

from typing import Any

import pytest

from engram.composition.container import Application
from engram.services.erasure.erasure_service import ErasureRequest
from tests.conftest import Ingest
from tests.support import state
from tests.support.strict_client import TestClient
from tests.support.undo import assert_verified

QUESTION = "How much may I spend on food when I am away?"
TEXT = "The daily travel allowance is 32 EUR. Receipts are kept for two years."
TRAVEL = {"id": "travel#1", "title": "Travel", "text": TEXT, "document": "travel.md"}
DESK = {"id": "desk", "title": "Desk", "text": "Visitors sign in at the front desk. Ask Ana."}
LEARNED = ("sentence_memory", "question_support", "memory_audit")


@pytest.fixture
def judged(application: Application, ingest: Ingest, collection: str) -> tuple[str, int]:
    """A collection in which two verdicts support the first sentence of a document, and that sentence."""
    ingest(TRAVEL, DESK)
    sentence = next(iter(state.sentences(application, collection, "travel#1").values()))
    for _ in range(2):
        support(application, collection, sentence)
    return collection, sentence


def support(application: Application, collection: str, *sentences: int) -> int:
    """Support the sentences for the question; the event."""
    episode = state.add_episode(application, collection, QUESTION, list(sentences))
    return state.judge(application, collection, episode, list(sentences), wait=True).event.id


def list_learned(application: Application, collection: str) -> dict[str, list[dict[str, Any]]]:
    return state.snapshot(application, collection, LEARNED, ["updated_at"])


def delete(http: TestClient, collection: str) -> None:
    http.delete("/documents/travel.md", params={"collection": collection}).raise_for_status()


def assert_untaught(application: Application, collection: str) -> None:
    learned = list_learned(application, collection)
    assert learned["sentence_memory"] == learned["question_support"] == []
    assert_verified(application, collection)


def test_a_document_that_returns_gets_what_was_learned_exactly_once(
    application: Application, ingest: Ingest, http: TestClient, judged: tuple[str, int]
) -> None:
    collection, sentence = judged
    before = list_learned(application, collection)
    since = state.rows(application, collection, "passage")[0]["text_since"]
    assert len(before["question_support"]) == 1
    for _ in range(2):
        delete(http, collection)
        assert list_learned(application, collection)["sentence_memory"] == []
        ingest(TRAVEL)
        assert list_learned(application, collection) == before
        assert state.rows(application, collection, "removed_passage") == []
        assert_verified(application, collection)
    assert next(iter(state.sentences(application, collection, "travel#1").values())) == sentence
    assert {one["text_since"] for one in state.rows(application, collection, "passage")} >= {since}
    answer = http.post("/query", json={"query": QUESTION, "collection": collection, "include": ["trace"]}).json()
    assert [one["sentence_id"] for one in answer["trace"]["recalled"]] == [sentence]


def test_a_passage_without_a_document_returns_too(
    application: Application, ingest: Ingest, http: TestClient, collection: str
) -> None:
    ingest(DESK)
    support(application, collection, next(iter(state.sentences(application, collection, "desk").values())))
    before = list_learned(application, collection)["question_support"]
    http.delete("/passages/desk", params={"collection": collection}).raise_for_status()
    ingest(DESK)
    assert list_learned(application, collection)["question_support"] == before
    assert len(before) == 1
    assert_verified(application, collection)


@pytest.mark.parametrize(
    "other",
    [
        TRAVEL | {"text": TEXT.replace("32", "33")},
        TRAVEL | {"title": "Journeys"},
        TRAVEL | {"document": "other.md"},
        TRAVEL | {"sentences": [TEXT]},
    ],
)
def test_another_text_or_document_gets_nothing(
    application: Application, ingest: Ingest, http: TestClient, judged: tuple[str, int], other: dict[str, Any]
) -> None:
    collection, _ = judged
    delete(http, collection)
    ingest(other)
    assert_untaught(application, collection)


def test_another_collection_gets_nothing(
    application: Application, ingest: Ingest, http: TestClient, judged: tuple[str, int]
) -> None:
    collection, _ = judged
    delete(http, collection)
    ingest(TRAVEL, into=f"{collection}-2")
    assert_untaught(application, f"{collection}-2")


def test_a_verdict_that_was_revoked_meanwhile_is_not_learned_again(
    application: Application, ingest: Ingest, http: TestClient, judged: tuple[str, int]
) -> None:
    collection, sentence = judged
    scope = application.auth.access.scope(collection)
    first, second = state.event_statuses(application, collection)
    delete(http, collection)
    application.learning.revocation.revoke(scope, first)
    ingest(TRAVEL)
    (found,) = list_learned(application, collection)["question_support"]
    assert (found["sentence_id"], found["update_count"]) == (sentence, 1)
    assert_verified(application, collection)
    application.learning.revocation.revoke(scope, second)
    delete(http, collection)
    ingest(TRAVEL)
    assert_untaught(application, collection)


@pytest.mark.parametrize("anonymise", [False, True])
def test_what_was_erased_meanwhile_is_not_learned_again(
    application: Application, ingest: Ingest, http: TestClient, judged: tuple[str, int], anonymise: bool
) -> None:
    collection, _ = judged
    (judge,) = {one["judge"] for one in state.rows(application, collection, "feedback_event")}
    delete(http, collection)
    request = ErasureRequest.build("judge", name=judge, anonymise=anonymise)
    application.revocation.erasure.request(application.auth.access.scope(collection), request)
    application.jobs.runner.run_ready()
    ingest(TRAVEL)
    assert state.rows(application, collection, "feedback_event") == []
    assert_untaught(application, collection)


def test_a_verdict_that_was_applied_in_its_absence_teaches_nothing_of_it(
    application: Application, ingest: Ingest, http: TestClient, judged: tuple[str, int]
) -> None:
    collection, sentence = judged
    other = next(iter(state.sentences(application, collection, "desk").values()))
    before = list_learned(application, collection)["question_support"]
    ranked = list(state.passages(application, collection).values())
    # The verdict on it rejects what it does not name.
    episode = state.add_episode(application, collection, QUESTION, [other, sentence], ranked=ranked)
    delete(http, collection)
    state.judge(application, collection, episode, [other], wait=True)
    ingest(TRAVEL)
    after = list_learned(application, collection)["question_support"]
    assert [one for one in after if one["sentence_id"] == sentence] == before
    assert len(state.rows(application, collection, "weight_audit")) == 1
    assert_verified(application, collection)
    support(application, collection, sentence)
    assert_verified(application, collection)


def test_new_readers_do_not_keep_it_away(
    application: Application, ingest: Ingest, http: TestClient, judged: tuple[str, int]
) -> None:
    collection, _ = judged
    before = list_learned(application, collection)
    delete(http, collection)
    ingest(TRAVEL | {"readers": ["group:hr"]})
    assert list_learned(application, collection) == before
    hidden = http.post("/query", json={"query": QUESTION, "collection": collection, "as": ["group:it"]}).json()
    assert [one["passage_id"] for one in hidden["passages"]] == ["desk"]
    assert_verified(application, collection)


def test_a_passage_with_another_id_in_its_document_returns(
    application: Application, ingest: Ingest, http: TestClient, judged: tuple[str, int]
) -> None:
    collection, _ = judged
    before = list_learned(application, collection)
    delete(http, collection)
    ingest(TRAVEL | {"text": "Breakfast is paid by the hotel."}, TRAVEL | {"id": "travel#2"})
    assert list_learned(application, collection) == before
    assert_verified(application, collection)


def test_equal_passages_of_one_document_return_each(
    application: Application, ingest: Ingest, http: TestClient, collection: str
) -> None:
    ingest(TRAVEL, TRAVEL | {"id": "travel#2"})
    first, second = (next(iter(state.sentences(application, collection, f"travel#{n}").values())) for n in (1, 2))
    support(application, collection, first)
    support(application, collection, second)
    before = list_learned(application, collection)
    delete(http, collection)
    assert len(state.rows(application, collection, "removed_passage")) == 2
    ingest(TRAVEL)
    assert len(state.rows(application, collection, "removed_passage")) == 1
    ingest(TRAVEL | {"id": "travel#2"})
    assert list_learned(application, collection) == before
    assert {one["sentence_id"] for one in before["question_support"]} == {first, second}
    assert_verified(application, collection)


def test_a_verdict_that_waits_teaches_what_returned(
    application: Application, ingest: Ingest, http: TestClient, collection: str
) -> None:
    ingest(TRAVEL, DESK)
    sentence = next(iter(state.sentences(application, collection, "travel#1").values()))
    episode = state.add_episode(application, collection, QUESTION, [sentence])
    waiting = state.judge(application, collection, episode, [sentence]).event
    delete(http, collection)
    ingest(TRAVEL)
    application.learning.learner.apply_unless_busy(waiting.collection_id, [waiting.id])
    (found,) = list_learned(application, collection)["question_support"]
    assert found["sentence_id"] == sentence
    assert_verified(application, collection)


def test_a_text_that_was_revised_before_it_went_returns_without(
    application: Application, ingest: Ingest, http: TestClient, judged: tuple[str, int]
) -> None:
    collection, _ = judged
    revised = TRAVEL | {"text": TEXT.replace("32", "33")}
    ingest(revised)
    delete(http, collection)
    ingest(revised)
    assert_untaught(application, collection)


def test_what_was_forgotten_is_not_learned_again(
    application: Application, ingest: Ingest, http: TestClient, judged: tuple[str, int]
) -> None:
    collection, _ = judged
    delete(http, collection)
    assert len(state.rows(application, collection, "removed_passage")) == 1
    application.revocation.learning_reset.reset(application.auth.access.scope(collection))
    assert state.rows(application, collection, "removed_passage") == []
    ingest(TRAVEL)
    assert_untaught(application, collection)
