"""Memories of sentences that are revised, and of those that return with their passage."""

from typing import Any

import pytest

from engram.composition.container import Application
from engram.wings.published.parts import published_of
from tests.conftest import Ingest
from tests.support import state
from tests.support.strict_client import TestClient
from tests.support.undo import assert_verified

MOVE = {"id": "move", "title": "Move", "text": "The company moved to the new house in 2019. It is big."}
REVISED = MOVE | {"text": "The company moved to the new house in 2021. It is big."}
DESK = {"id": "desk", "title": "Desk", "text": "Visitors sign in at the front desk. Ask Ana."}
QUESTION = "Where was it in 2019?"


@pytest.fixture
def sentence(application: Application, ingest: Ingest, collection: str) -> int:
    """The first sentence of a passage, which has a time."""
    ingest(MOVE, DESK)
    return next(iter(state.sentences(application, collection, "move").values()))


def support(application: Application, collection: str, *sentences: int) -> int:
    """Support the sentences for a question about a time; return the event."""
    episode = state.add_episode(application, collection, QUESTION, list(sentences), "in 2019")
    return state.judge(application, collection, episode, list(sentences), wait=True).event.id


def load_memories(application: Application, collection: str) -> dict[str, dict[str, Any]]:
    """Channel -> memory, where verdicts moved those of one sentence."""
    rows = state.rows(application, collection, "sentence_memory")
    assert len({row["sentence_id"] for row in rows}) == 1
    return {row["channel"]: row | {"updated_at": None, "time_expression_id": None} for row in rows}


def set_learning(application: Application, collection: str, learns: bool) -> None:
    setting = None if learns else {"learn": False}
    application.corpus.collection_settings.configure(
        application.auth.access.scope(collection), {"published": setting}
    )


def catch_up(application: Application) -> None:
    while published_of(application).catch_up.run():
        pass


def test_a_time_memory_begins_as_the_revised_time(
    application: Application, ingest: Ingest, collection: str, sentence: int
) -> None:
    support(application, collection, sentence)
    ingest(REVISED)
    (row,) = [one for one in state.rows(application, collection, "sentence") if one["id"] == sentence]
    memories = {one["channel"]: one for one in state.rows(application, collection, "sentence_memory")}
    assert memories["time"]["time_expression_id"] == row["time_expression_id"]
    assert "2021" in row["text"]
    assert_verified(application, collection)


def test_a_verdict_moves_the_memory_of_a_revised_sentence_less(
    application: Application, ingest: Ingest, collection: str, sentence: int
) -> None:
    support(application, collection, sentence)
    before = load_memories(application, collection)
    ingest(REVISED)
    revised = load_memories(application, collection)
    assert {channel: row["update_count"] for channel, row in revised.items()} == {"task": 1, "time": 1}
    for channel, row in revised.items():
        assert before[channel]["perplexity"] < row["perplexity"] < 1.0
    assert_verified(application, collection)


def test_memories_return_with_their_passage(
    application: Application, ingest: Ingest, http: TestClient, collection: str, sentence: int
) -> None:
    for _ in range(2):
        support(application, collection, sentence)
    before = load_memories(application, collection)
    assert before.keys() == {"task", "time"}
    http.delete("/passages/move", params={"collection": collection}).raise_for_status()
    assert state.rows(application, collection, "sentence_memory") == []
    ingest(MOVE)
    assert load_memories(application, collection) == before
    assert_verified(application, collection)


def test_memories_that_learn_later_are_of_the_text_that_was_judged(
    application: Application, ingest: Ingest, collection: str, sentence: int
) -> None:
    set_learning(application, collection, False)
    support(application, collection, sentence)
    ingest(REVISED)
    support(application, collection, sentence)
    assert state.rows(application, collection, "sentence_memory") == []
    set_learning(application, collection, True)
    catch_up(application)
    audit = state.rows(application, collection, "memory_audit")
    assert {(row["channel"], row["revision"]) for row in audit} == {
        (channel, revision) for channel in ("recall", "task", "time") for revision in (0, 1)
    }
    assert load_memories(application, collection)["task"]["update_count"] == 2
    assert_verified(application, collection)


def test_a_sentence_that_was_absent_when_memories_caught_up_returns_without_them(
    application: Application, ingest: Ingest, http: TestClient, collection: str, sentence: int
) -> None:
    other = next(iter(state.sentences(application, collection, "desk").values()))
    set_learning(application, collection, False)
    support(application, collection, sentence, other)
    http.delete("/passages/move", params={"collection": collection}).raise_for_status()
    set_learning(application, collection, True)
    catch_up(application)
    ingest(MOVE)
    assert {row["sentence_id"] for row in state.rows(application, collection, "sentence_memory")} == {other}
    assert {row["sentence_id"] for row in state.rows(application, collection, "question_support")} == {
        sentence,
        other,
    }
    assert_verified(application, collection)
