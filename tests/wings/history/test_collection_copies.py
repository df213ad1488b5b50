"""What there is to copy of a collection as of a moment, and what a copy is known by."""

from collections.abc import Callable
from dataclasses import asdict
from uuid import uuid4

import pytest

from engram.composition.container import Application
from engram.storage.revocation.copied_rows import Copy
from engram.wings.history.storage import collection_copies, copied_log
from engram.wings.history.storage.collection_copies import Corpus
from engram.wings.published.storage import copied_keys
from tests.conftest import Ingest
from tests.storage.conftest import TaughtCollection
from tests.support import past, state

COUNTED = ("key_credit", "passage_key")
LATER_PASSAGE = {"id": "oslo", "title": "Oslo", "text": "Oslo is the capital of Norway."}
CHANGED_PASSAGE = {"id": "tokyo", "title": "Tokyo", "text": "Tokyo is the capital of Japan."}


def test_a_census_tells_what_was_there_from_what_came_and_changed_since(
    application: Application, curie: str, ingest: Ingest
) -> None:
    target = state.collection_id(application, curie)
    ids = state.list_sentence_ids(application, curie)
    query_id = state.add_episode(application, curie, "Who?", ids)
    state.judge(application, curie, query_id, ids[:1], wait=True)
    state.judge(application, curie, query_id, ids[:1])  # waits, and so counts in no past
    until = past.now(application)
    ingest(LATER_PASSAGE, CHANGED_PASSAGE, into=curie)
    state.judge(application, curie, query_id, ids[:1], wait=True)
    entities, terms = (len(state.rows(application, curie, table)) for table in ("entity", "lexical_term"))
    with application.database.read() as reader:
        assert collection_copies.census(reader, target, until) == Corpus(5, 1, 1, entities, terms, 1)
        assert collection_copies.census(reader, target, past.now(application)) == Corpus(
            6, 0, 0, entities, terms, 2
        )


def test_copy_at_the_creation_time_is_empty(application: Application, curie: str) -> None:
    target = state.collection_id(application, curie)
    until = past.rows_of_collection(application, curie)[0]["created_at"]
    with application.database.read() as reader:
        assert asdict(collection_copies.census(reader, target, until)) | {"entities": 0, "terms": 0} == asdict(
            Corpus(0, 5, 0, 0, 0, 0)
        )
        assert collection_copies.passages(reader, Copy(target, target, until), 0, 10) == []
        assert copied_log.events(reader, Copy(target, target, until), 0, 10) == []


@pytest.mark.parametrize(
    ("table", "following"),
    [
        ("passage", collection_copies.passages),
        ("entity", collection_copies.entities),
        ("lexical_term", collection_copies.terms),
    ],
)
def test_ids_come_page_by_page_in_their_order(
    application: Application, twins: TaughtCollection, table: str, following: Callable[..., list[int]]
) -> None:
    copy = Copy(twins.id, twins.other, past.now(application))
    found: list[int] = []
    with application.database.read() as reader:
        while page := following(reader, copy, found[-1] if found else 0, 2):
            assert len(page) <= 2
            found += page
    assert found == sorted(row["id"] for row in state.rows(application, twins.name, table)) != []


def test_verdicts_come_in_the_order_of_acceptance(application: Application, twins: TaughtCollection) -> None:
    copy = Copy(twins.id, twins.other, past.now(application))
    with application.database.read() as reader:
        assert copied_log.events(reader, copy, 0, 100) == twins.events
        assert copied_log.events(reader, copy, twins.events[2], 2) == twins.events[3:5]
        assert copied_log.list_revoked_since(reader, twins.id, copy.until) == []


def test_a_copy_is_known_by_its_job_and_starts_empty(application: Application, twins: TaughtCollection) -> None:
    name, job, until = f"copy-{uuid4().hex}", uuid4(), past.now(application)
    with application.database.write() as writer:
        assert not collection_copies.is_taken(writer, twins.id, name)
        copy = collection_copies.open_copy(writer, twins.id, name, until, job)
        collection_copies.describe(writer, copy, {"events": 3})
    with application.database.read() as reader:
        assert collection_copies.is_taken(reader, twins.id, name)
        assert collection_copies.find_report(reader, twins.id, name, job) == {"events": 3}
        assert collection_copies.find_report(reader, twins.id, name, uuid4()) is None
        assert copied_log.count_learned_rows(reader, copy, COUNTED) == dict.fromkeys(
            ("question", "question_support", "weight_audit", *COUNTED), 0
        )
        assert not copied_keys.has_keys(reader, copy)
        other = Copy(copy.target, twins.id, until)
        counts = copied_log.count_learned_rows(reader, other, COUNTED)
    assert counts == {table: len(state.rows(application, twins.name, table)) for table in counts}
    (row,) = past.rows_of_collection(application, name)
    assert (row["serving"], row["passage_count"], row["past"]["of"]) == ("shadow", 0, twins.name)
    application.corpus.ingest.delete_collection(application.auth.access.scope(name))
