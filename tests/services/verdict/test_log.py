"""Verdicts on their way into the log: each once, many at a time, and none at the cost of another."""

import threading
from collections.abc import Sequence
from concurrent.futures import wait
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from engram.composition.container import Application
from engram.context import tenancy
from engram.context.errors import (
    GoneError,
    IdempotencyConflictError,
    InvalidRequestError,
    NotFoundError,
    UnavailableError,
)
from engram.core.auth.access_keys import Grants
from engram.core.learning.logged_verdict import Expansion
from engram.services.auth.scope import Principal
from engram.services.question.query import Query
from engram.services.verdict.log import VerdictLog
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.storage.corpus import collection_deletion
from engram.storage.database import Database, Writer
from engram.storage.feedback_log import event_intake as log
from engram.storage.feedback_log.feedback_events import VerdictEvent
from tests.conftest import UNREACHABLE_SERVERS, Ingest
from tests.support import state
from tests.support.citus import skip_on_citus


@pytest.fixture
def verdict(application: Application, curie: str) -> Verdict:
    """On an answer, by the id of a sentence."""
    answer = application.answers.question.answer(
        Query(text="Where was Marie Curie born?", scope=application.auth.access.scope(curie))
    )
    sentence = answer.passages[0].sentences[0].sentence_id
    return Verdict(
        query_id=answer.query_id,
        scope=application.auth.access.scope(curie),
        supporting=[NamedSentence(sentence)],
        partial=True,
    )


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many verdicts each statement stored."""
    sizes: list[int] = []
    append = log.append

    def append_and_record(writer: Writer, events: Sequence[VerdictEvent], *, check: bool) -> object:
        found = append(writer, events, check=check)
        sizes.append(sum(one is not None for one in found))
        return found

    monkeypatch.setattr("engram.services.verdict.log.event_intake.append", append_and_record)
    return sizes


def test_many_are_stored_together_and_each_once(
    application: Application, curie: str, verdict: Verdict, stored: list[int]
) -> None:
    names = [f"key-{uuid4()}" for _ in range(150)]

    futures = [application.learning.log.store_soon(verdict, key) for key in (*names, *names)]

    events = [future.result(timeout=30) for future in futures]
    assert [event.idempotency_key for event in events] == [*names, *names]
    assert [event.id for event in events[:150]] == [event.id for event in events[150:]]
    assert sorted(row["idempotency_key"] for row in state.rows(application, curie, "feedback_event")) == sorted(
        names
    )
    assert sum(stored) == 150
    assert len([size for size in stored if size]) < 75


def test_batched_verdicts_fail_individually(application: Application, verdict: Verdict, stored: list[int]) -> None:
    application.learning.log.store_now(verdict, first := f"key-{uuid4()}")
    passage = NamedSentence(passage_id="curie", text="Marie Curie was born in Warsaw")
    nowhere = replace(verdict.scope, collection=replace(verdict.scope.collection, id=2**62))
    cases = {
        "as it was": (verdict, first, None),
        "new": (verdict, f"key-{uuid4()}", None),
        "by its words": (replace(verdict, supporting=[passage]), f"key-{uuid4()}", None),
        "another verdict": (replace(verdict, confidence=0.5), first, IdempotencyConflictError),
        "no such sentence": (
            replace(verdict, rejected=[NamedSentence(2**62)]),
            f"key-{uuid4()}",
            InvalidRequestError,
        ),
        "for and against": (replace(verdict, rejected=verdict.supporting), f"key-{uuid4()}", InvalidRequestError),
        "no such query": (replace(verdict, query_id=uuid4()), f"key-{uuid4()}", NotFoundError),
        "a collection that is gone": (replace(verdict, scope=nowhere), f"key-{uuid4()}", GoneError),
        "not to be stored": (verdict, f"key\x00{uuid4()}", Exception),
        "new as well": (verdict, f"key-{uuid4()}", None),
    }

    futures = {name: application.learning.log.store_soon(given, key) for name, (given, key, _) in cases.items()}

    wait(futures.values(), timeout=30)
    for name, (_, key, error) in cases.items():
        if error is None:
            assert futures[name].result().idempotency_key == key, name
        else:
            assert isinstance(futures[name].exception(), error), name
    assert sum(stored) == 4


def test_a_query_of_another_that_found_hidden_passages_is_none(application: Application, verdict: Verdict) -> None:
    application.corpus.readers.set_of_passage(verdict.scope, "curie", ["user:ana"])
    other = Principal("bo", "local", Grants.from_mapping({"*": ["judge"]}), reads_as=("user:bo",))
    sentences = state.sentences(application, verdict.scope.collection.name, "warsaw")
    for name in (
        NamedSentence(passage_id="warsaw", text="Warsaw lies on the Vistula."),
        NamedSentence(sentences["Warsaw lies on the Vistula."]),
    ):
        judged = replace(verdict, scope=replace(verdict.scope, principal=other), supporting=[name])
        with tenancy.restrict_to("local", other.readers), pytest.raises(NotFoundError, match="no query"):
            application.learning.log.store_soon(judged, f"key-{uuid4()}").result(timeout=30)


def test_hash_of_a_verdict_stays(verdict: Verdict) -> None:
    """A repetition of a logged verdict is known by its hash, also by a later version."""
    judged: dict[str, Any] = {
        "query_id": UUID(int=7),
        "scope": verdict.scope,
        "supporting": [NamedSentence(17), NamedSentence(passage_id="curie", text="x")],
        "rejected": [NamedSentence(4, examined=0.25)],
        "expansions": [Expansion("m", "t")],
        "judge": "ana",
        "confidence": 0.5,
        "supporting_passages": ["p"],
    }
    rated: dict[str, Any] = {
        "query_id": UUID(int=7),
        "scope": verdict.scope,
        "judge": "ana",
        "rating": "down",
        "cited": [NamedSentence(passage_id="titan"), NamedSentence(3)],
        "reason": "missing",
    }

    hashes = [Verdict(**given).compute_hash().hex() for given in (judged, rated)]

    assert hashes == [
        "8e643c5dd2ad79dc89af53fb54ce67a934700531b581ac51c609ffe767698f28",
        "bd69223df05ef355d773ab4cdba00df70a39e8069064ec296a794accb669dc9d",
    ]


def test_cancelled_verdict_is_not_stored(
    application: Application, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = VerdictLog(application.database, application.stream, application.models.encoder)
    begun, free = threading.Event(), threading.Event()
    append = log.append

    def append_slowly(writer: Writer, events: Sequence[VerdictEvent], *, check: bool) -> list[VerdictEvent | None]:
        begun.set()
        assert free.wait(30)
        return append(writer, events, check=check)

    monkeypatch.setattr(log, "append", append_slowly)
    first = waiting.store_soon(verdict, f"key-{uuid4()}")
    assert begun.wait(30)
    left = waiting.store_soon(verdict, gone := f"key-{uuid4()}")
    kept = waiting.store_soon(verdict, f"key-{uuid4()}")

    assert left.cancel()
    free.set()

    assert first.result(timeout=30).id < kept.result(timeout=30).id
    with application.database.read() as reader:
        assert log.find_by_key(reader, kept.result().collection_id, "local", gone) is None
    waiting.close()


@skip_on_citus("a verdict while its collection is being deleted")
def test_collection_deletion_does_not_block_other_verdicts(
    application: Application, verdict: Verdict, ingest: Ingest, collection: str
) -> None:
    ingest({"id": "mill", "text": "The Old Mill stands in Ely."}, into=f"{collection}-doomed")
    scope = application.auth.access.scope(f"{collection}-doomed")
    answer = application.answers.question.answer(Query(text="Where is the Old Mill?", scope=scope))
    doomed = replace(verdict, scope=scope, query_id=answer.query_id, supporting=())
    with application.database.write() as writer:
        assert collection_deletion.begin(writer, scope.collection.id)
        keys = [f"key-{uuid4()}" for _ in range(4)]
        waiting = [application.learning.log.store_soon(doomed, key) for key in keys[:2]]
        others = [application.learning.log.store_soon(verdict, key) for key in keys[2:]]

        done, _ = wait(others, timeout=30)

        assert done == set(others)
        assert not any(future.done() for future in waiting)
    assert [type(future.exception(timeout=30)) for future in waiting] == [GoneError] * 2


def test_closed_intake_refuses_verdicts(application: Application, verdict: Verdict) -> None:
    waiting = VerdictLog(application.database, application.stream, application.models.encoder)
    waiting.close()
    with pytest.raises(UnavailableError, match="is ending"):
        waiting.store_soon(verdict, f"key-{uuid4()}")


def test_lost_database_fails_every_waiting_verdict(application: Application, verdict: Verdict) -> None:
    away = Database(UNREACHABLE_SERVERS.database_url, pool_size=1)
    waiting = VerdictLog(away, application.stream, application.models.encoder)

    futures = [waiting.store_soon(verdict, f"key-{uuid4()}") for _ in range(5)]

    assert [type(future.exception(timeout=30)) for future in futures] == [UnavailableError] * 5
    waiting.close()
    away.close()
