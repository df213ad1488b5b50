"""The strongest verdicts behind an answer, as the log gives them; every figure counted from the rows themselves."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from engram.composition.container import Application
from engram.core.learning.states import RECALL, Audit
from engram.storage.corpus import collections
from engram.storage.database import Reader
from engram.storage.question.metadata_filter import compile_filter
from engram.storage.question.query_focus import Focus
from engram.wings.why.storage import influence_rows
from engram.wings.why.storage.influence_rows import MemoryCause, MovedSentence
from tests.storage.conftest import TaughtCollection
from tests.support import state, undo

CHANNELS = ("task", "time")


@pytest.fixture
def audit(application: Application, taught: TaughtCollection) -> list[dict[str, Any]]:
    return state.rows(application, taught.name, "memory_audit")


def focus(application: Application, reader: Reader, taught: TaughtCollection, question: str, **more: Any) -> Focus:
    found = collections.load_by_id(reader, taught.id)
    return Focus(
        found,
        application.models.embedder.embed([question])[0],
        limits=application.models.limits,
        use_memory=True,
        **more,
    )


def test_movers_are_the_strongest_of_each_sentence(
    application: Application, taught: TaughtCollection, audit: list[dict[str, Any]]
) -> None:
    strength: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for row in audit:
        if row["channel"] in CHANNELS:
            strength[row["sentence_id"]][row["event_id"]] += row["gain"] * abs(row["residual"])
    with application.database.read() as reader:
        movers = influence_rows.list_strongest_events(reader, taught.id, list(strength), CHANNELS, 2)
    expected = {sentence: sorted(events.values(), reverse=True)[:2] for sentence, events in strength.items()}
    found: dict[int, list[float]] = defaultdict(list)
    for mover in movers:
        found[mover.sentence_id].append(strength[mover.sentence_id][mover.event_id])
        assert mover.total == len(strength[mover.sentence_id])
    assert {sentence: pytest.approx(some) for sentence, some in expected.items()} == dict(found)
    assert [mover.sentence_id for mover in movers[: len(found)]] == sorted(found), (
        "the strongest of each come first"
    )


def test_the_strongest_movers_are_those_that_moved_a_memory_furthest(application: Application, curie: str) -> None:
    undo.apply(application, curie, undo.stream(application, curie, 20, seed=6), 5)
    everything = state.list_sentence_ids(application, curie)
    audit = [
        Audit(**row)
        for row in state.rows(application, curie, "memory_audit", ("collection_id",))
        if row["channel"] != RECALL
    ]

    def strongest(sentence: int) -> Sequence[int]:
        moved: dict[int, float] = {}
        for row in audit:
            if row.sentence_id == sentence:
                moved[row.event_id] = moved.get(row.event_id, 0.0) + row.strength
        return sorted(moved, key=lambda event: (-moved[event], -event))[:3]

    with application.database.read() as reader:
        target = collections.find(reader, curie).id
        movers = influence_rows.list_strongest_events(reader, target, everything, ("task", "time"), 3)
    for sentence in everything:
        found = [mover.event_id for mover in movers if mover.sentence_id == sentence]
        assert found == strongest(sentence)


def test_neither_no_sentences_nor_those_of_another_collection_have_movers(
    application: Application, taught: TaughtCollection, audit: list[dict[str, Any]]
) -> None:
    sentences = [row["sentence_id"] for row in audit]
    with application.database.read() as reader:
        assert influence_rows.list_strongest_events(reader, taught.id, [], CHANNELS, 5) == []
        assert influence_rows.list_strongest_events(reader, taught.other, sentences, CHANNELS, 5) == []
        assert influence_rows.list_moved_sentences(reader, taught.other, taught.events, sentences) == []
        assert influence_rows.causes(reader, taught.other, taught.events) == {}
        assert influence_rows.find_questions(reader, taught.other, taught.events) == {}


def test_touched_are_sentences_with_all_their_steps_and_those_of_the_events(
    application: Application, taught: TaughtCollection, audit: list[dict[str, Any]]
) -> None:
    some = taught.events[:2]
    moved = [row for row in audit if row["channel"] in CHANNELS]
    expected = []
    for sentence in sorted({row["sentence_id"] for row in moved}):
        events = [row["event_id"] for row in moved if row["sentence_id"] == sentence]
        if set(events) & set(some):
            expected.append(MovedSentence(sentence, len(events), sorted(set(events) & set(some))))
    with application.database.read() as reader:
        found = influence_rows.list_moved_sentences(
            reader, taught.id, some, state.list_sentence_ids(application, taught.name)
        )
    assert expected
    assert found == expected


def test_unapplied_verdict_has_no_influence_rows(application: Application, curie: str) -> None:
    ids = state.list_sentence_ids(application, curie)
    query_id = state.add_episode(application, curie, "Who?", ids)
    applied, revoked = (state.judge(application, curie, query_id, ids[:1], wait=True).event.id for _ in range(2))
    target = state.collection_id(application, curie)
    with application.database.write() as writer:
        writer.execute(
            "UPDATE feedback_event SET status = 'revoked' WHERE collection_id = %(c)s AND id = %(id)s",
            {"c": target, "id": revoked},
        )
    with application.database.read() as reader:
        assert influence_rows.list_strongest_events(reader, target, ids[:1], CHANNELS, 5) == [
            MemoryCause(ids[0], applied, 1)
        ]
        assert influence_rows.causes(reader, target, [applied, revoked]).keys() == {applied}
        assert influence_rows.find_questions(reader, target, [applied, revoked]).keys() == {applied}
        (near,) = influence_rows.list_near_questions(
            reader,
            Focus(collections.load_by_id(reader, target), vector_of(application), limits=application.models.limits),
            5,
        )
        assert near.events == 1


def vector_of(application: Application, question: str = "Who?") -> Any:
    return application.models.embedder.embed([question])[0]


def test_near_questions_come_nearest_first(application: Application, taught: TaughtCollection) -> None:
    with application.database.read() as reader:
        asked = focus(application, reader, taught, "Who was born in Warsaw?")
        every = influence_rows.list_near_questions(reader, asked, 10)
        assert every[0].question.lower().split() == ["who", "was", "born", "in", "warsaw?"]
        similarities = [one.similarity for one in every]
        assert similarities == sorted(similarities, reverse=True)
        assert len(every) == len(state.rows(application, taught.name, "question")) > 1
        assert sum(one.events for one in every) == len(taught.events)
        assert influence_rows.list_near_questions(reader, asked, 1) == every[:1]


def test_a_sentence_is_placed_by_its_passage_and_the_filter(
    application: Application, taught: TaughtCollection
) -> None:
    sentences = state.rows(application, taught.name, "sentence")
    ids = [row["id"] for row in sentences]
    with application.database.read() as reader:
        for condition, passing in ((None, True), ({"none": "has this"}, False)):
            asked = focus(application, reader, taught, "Who?", filter=compile_filter(condition))
            placed = influence_rows.find_places(reader, asked, [*ids, 2**40])
            assert placed.keys() == set(ids), "one that does not exist is left out"
            for row in sentences:
                one = placed[row["id"]]
                assert (one.passage_id, one.passing) == (row["passage_id"], passing)
        assert influence_rows.find_places(reader, asked, []) == {}


def test_the_latest_terms_come_in_the_order_of_application(
    application: Application, taught: TaughtCollection
) -> None:
    order = state.list_applied_order(application, taught.name)
    believed = state.prior_of(application, taught.name).of_sufficiency
    terms = state.rows(application, taught.name, "weight_audit")
    stored = {row["event_id"]: row for row in terms if row["model"] == believed.model}
    expected = [event for event in order if event in stored]
    with application.database.read() as reader:
        every = influence_rows.list_latest_terms(reader, taught.id, believed, 100)
        assert [term.event_id for term in every] == expected
        assert [
            term.event_id for term in influence_rows.list_latest_terms(reader, taught.id, believed, 3)
        ] == expected[-3:]
        assert influence_rows.list_latest_terms(reader, taught.id, replace(believed, prior="another"), 3) == []
    for term in every:
        row = stored[term.event_id]
        assert term.evidence.information.tolist() == row["information"]
        assert (term.counted, term.contested) == (row["counted"], row["contested"])
