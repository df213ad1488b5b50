"""What is remembered of one sentence, page by page."""

from typing import Any

import pytest

from engram.composition.container import Application
from engram.wings.why.storage import sentence_history
from tests.storage.conftest import TaughtCollection
from tests.support import state


@pytest.fixture
def judged(application: Application, taught: TaughtCollection) -> int:
    """The sentence with most audit rows."""
    ids = [row["sentence_id"] for row in state.rows(application, taught.name, "memory_audit")]
    return max(set(ids), key=ids.count)


def list_all_moves(application: Application, taught: TaughtCollection, sentence: int, limit: int) -> list[Any]:
    """Page after page."""
    found: list[Any] = []
    with application.database.read() as reader:
        while page := sentence_history.moves(
            reader, taught.id, sentence, found[-1].sequence if found else 0, limit
        ):
            assert len({move.sequence for move in page}) <= limit
            found += page
    return found


def test_sentence_is_read_with_its_passage(application: Application, taught: TaughtCollection) -> None:
    (text, sentence), *_ = state.sentences(application, taught.name, "vistula").items()
    with application.database.read() as reader:
        found = sentence_history.load_sentence(reader, taught.id, sentence)
        assert found == sentence_history.FoundSentence(sentence, text, 0, "vistula", "Vistula")
        assert sentence_history.load_sentence(reader, taught.other, sentence) is None
        assert sentence_history.load_sentence(reader, taught.id, 2**40) is None


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_pages_of_moves_are_the_audit_in_the_order_of_application(
    application: Application, taught: TaughtCollection, judged: int, limit: int
) -> None:
    place = {event: n for n, event in enumerate(state.list_applied_order(application, taught.name))}
    audit = [row for row in state.rows(application, taught.name, "memory_audit") if row["sentence_id"] == judged]
    expected = sorted(audit, key=lambda row: (place[row["event_id"]], row["channel"]))
    moves = list_all_moves(application, taught, judged, limit)
    columns = ("event_id", "channel", "target", "gain", "residual", "perplexity_before", "perplexity_after")
    assert [[getattr(move, name) for name in columns] for move in moves] == [
        [row[name] for name in columns] for row in expected
    ]
    assert all((move.similarity_now is None) == (move.channel == "recall") for move in moves)


def test_another_collection_has_no_moves_of_it(
    application: Application, taught: TaughtCollection, judged: int
) -> None:
    with application.database.read() as reader:
        assert sentence_history.moves(reader, taught.other, judged, 0, 10) == []
        assert sentence_history.supports(reader, taught.other, judged, 10) == ([], 0)


def test_supports_come_surest_first_beside_how_many_there_are(
    application: Application, taught: TaughtCollection, judged: int
) -> None:
    stored = [
        row for row in state.rows(application, taught.name, "question_support") if row["sentence_id"] == judged
    ]
    expected = sorted(stored, key=lambda row: (-row["support"], row["question_id"]))
    with application.database.read() as reader:
        every, total = sentence_history.supports(reader, taught.id, judged, 100)
        first, also = sentence_history.supports(reader, taught.id, judged, 1)
    assert [(one.question_id, one.support, one.perplexity) for one in every] == [
        (row["question_id"], row["support"], row["perplexity"]) for row in expected
    ]
    assert total == also == len(expected) > 1
    assert first == every[:1]
