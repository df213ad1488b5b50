"""A verdict on a session: to the queries of its rounds, each once, through the log; and what erasure leaves of
it.
"""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context.errors import IdempotencyConflictError, NotFoundError
from engram.services.auth.scope import Scope
from engram.services.question.query import Query
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.wings.history.parts import history_of
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.session_feedback import CONCLUSIVE, JUDGE
from engram.wings.sessions.services.session_service import NewSession
from engram.wings.sessions.services.session_state import SessionRequest
from tests.conftest import Ingest
from tests.services.corpus.test_erasure import places
from tests.support import state, undo
from tests.support.databases import application_on, open_migrated

CHAIN = "Into which sea does the river that the birthplace of Marie Curie lies on flow?"
PART = "into which sea does the river that Warsaw lies on flow"


def run_session(application: Application, scope: Scope, question: str = CHAIN, **asked: Any) -> UUID:
    how = SessionRequest(**{"top_k": 2, "threshold": 1.0} | asked)
    session = sessions_of(application).sessions.start(
        scope, NewSession(question=question, planner="pool", request=how)
    )
    assert sessions_of(application).sessions.wait(scope, session).stored.status == "stopped"
    return session


def verdict(scope: Scope, *sentences: int, **said: Any) -> Verdict:
    named = [NamedSentence(sentence) for sentence in sentences]
    return Verdict(query_id=UUID(int=0), scope=scope, supporting=named, judge="reader", **said)


def evidence(application: Application, collection: str) -> list[int]:
    texts = ("Marie Curie was born in Warsaw in 1867.", "Warsaw lies on the Vistula.")
    born, lies = (
        state.sentences(application, collection, passage)[text]
        for passage, text in zip(("curie", "warsaw"), texts, strict=True)
    )
    (flows,) = state.sentences(application, collection, "vistula").values()
    return [born, lies, flows]


def test_session_verdict_reaches_each_query_once(application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie)
    session = sessions_of(application).sessions.state(scope, run_session(application, scope))
    named = evidence(application, curie)
    said = verdict(scope, *named, retrieval_success=True)

    receipts = sessions_of(application).teacher.judge(session, said, "key", wait=True)

    own, part = (application.learning.verdicts.read(scope, one.event.id) for one in receipts)
    episodes = [round_.episodes[0] for round_ in session.rounds]
    assert [own.event.query_id, part.event.query_id] == episodes
    shown = {
        sentence
        for row in sessions_of(application).sessions.read(scope, session.id).evidence
        for sentence in [row.sentence_id]
    }
    assert set(own.event.verdict.supports) == set(named)
    assert set(own.event.verdict.missed) <= set(named)
    assert not own.event.verdict.partial
    assert part.event.verdict.partial
    assert set(part.event.verdict.supports) <= set(named) & shown
    assert part.event.verdict.supports
    assert {one.event.judge for one in receipts} == {"reader"}
    assert {change.target for one in receipts for change in one.changes or ()} >= {1}

    again = sessions_of(application).teacher.judge(session, said, "key", wait=True)
    assert [one.event.id for one in again] == [one.event.id for one in receipts]
    with pytest.raises(IdempotencyConflictError):
        sessions_of(application).teacher.judge(session, verdict(scope, named[0]), "key")
    undo.assert_verified(application, curie)


def test_sub_questions_are_recalled_like_questions(application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie)
    session = sessions_of(application).sessions.state(scope, run_session(application, scope))
    sessions_of(application).teacher.judge(session, verdict(scope, *evidence(application, curie)), "key", wait=True)
    asked = Query(text=f"{PART}?", scope=scope, include=frozenset({"trace"}))
    answer = application.answers.question.answer(asked)
    assert answer.trace is not None
    assert PART in {past.past_question for past in answer.trace.recalled}


def test_session_verdict_is_revoked_completely(application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie)
    session = sessions_of(application).sessions.state(scope, run_session(application, scope))
    before = state.list_learned(application, curie)
    said = verdict(scope, *evidence(application, curie))
    for receipt in sessions_of(application).teacher.judge(session, said, "key", wait=True):
        application.learning.revocation.revoke(scope, receipt.event.id)
    assert state.list_learned(application, curie) == before
    undo.assert_verified(application, curie)


def test_units_of_the_question_are_its_own_words(application: Application, ingest: Ingest, collection: str) -> None:
    ingest(
        {"id": "work", "title": "The Salt Road", "text": "The Salt Road was written by Ada Brandt."},
        {"id": "author", "title": "Ada Brandt", "text": "Ada Brandt was born in Emden. She wrote novels."},
    )
    scope = application.auth.access.scope(collection)
    question = "Where was the author of The Salt Road born?"
    session = sessions_of(application).sessions.state(
        scope, run_session(application, scope, question, top_k=1, stop="rounds")
    )
    queries = session.queries
    assert any("Ada Brandt" in query for query in queries)
    (sentence,) = state.sentences(application, collection, "work").values()
    receipts = sessions_of(application).teacher.judge(session, verdict(scope, sentence), "key", wait=True)
    texts = [
        unit.text
        for one in receipts
        for unit in application.learning.verdicts.read(scope, one.event.id).event.verdict.expansions
    ]
    assert not any("Ada" in text for text in texts)


def test_sub_questions_that_were_asked_in_other_words_become_units(application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie)
    session = sessions_of(application).sessions.state(scope, run_session(application, scope))
    rounds = [
        replace(one, said={**one.said, "sub_question": text})
        for one, text in zip(session.rounds, (CHAIN, "the birthplace of Marie Curie"), strict=True)
    ]
    said = verdict(scope, *evidence(application, curie))
    own, *_ = sessions_of(application).teacher.judge(replace(session, rounds=rounds), said, "key", wait=True)

    units = application.learning.verdicts.read(scope, own.event.id).event.verdict.expansions
    assert [unit.text for unit in units] == ["the birthplace of Marie Curie"]


def test_session_conclusion_counts_only_on_request(application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie)
    run_session(application, scope)
    assert application.learning.verdict_listing.page(scope, status=None, after=0, limit=10) == []
    session = run_session(application, scope, learn=True)
    events = [one.event for one in application.learning.verdict_listing.page(scope, status=None, after=0, limit=10)]
    assert {event.judge for event in events} == {JUDGE}
    (born, *_) = evidence(application, curie)
    for event in events:
        said = application.learning.verdicts.read(scope, event.id).event.verdict
        assert (said.supports, said.rejects, said.partial) == ((born,), (), True)
    assert {event.query_id for event in events} <= {
        episode
        for one in sessions_of(application).sessions.state(scope, session).rounds
        for episode in one.episodes
    }


def test_binding_without_a_stating_sentence_is_not_learned(
    application: Application, ingest: Ingest, collection: str
) -> None:
    ingest(
        {"id": "triton", "title": "Triton", "text": "It is the largest satellite of Neptune."},
        {"id": "lassell", "title": "William Lassell", "text": "The brewer William Lassell found Triton."},
    )
    scope = application.auth.access.scope(collection)
    asked = SessionRequest(top_k=2, threshold=1.0, learn=True)
    new = NewSession(question="Who found the largest satellite of Neptune?", planner="pool", request=asked)
    shown = sessions_of(application).sessions.wait(scope, sessions_of(application).sessions.start(scope, new))
    assert shown.stored.stop_reason in CONCLUSIVE
    assert [note["text"] for note in shown.stored.notes] == ["the largest satellite of Neptune: Triton"]
    assert application.learning.verdict_listing.page(scope, status=None, after=0, limit=10) == []


def test_session_without_stored_queries_cannot_be_judged(application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie)
    session = sessions_of(application).sessions.state(scope, run_session(application, scope))
    with application.database.write() as writer:
        writer.execute("DELETE FROM episode WHERE collection_id = %(c)s", {"c": scope.collection.id})
    with pytest.raises(NotFoundError, match="no query is kept"):
        sessions_of(application).teacher.judge(session, verdict(scope, *evidence(application, curie)), "key")


@pytest.fixture
def alone(addresses: Servers, settings: Settings, application: Application) -> Any:
    """An application on a database of its own: every row that there is gets looked through."""
    with open_migrated(addresses) as servers, application_on(servers, settings, application) as services:
        yield services


def test_a_deleted_passage_leaves_nothing_in_sessions_or_what_they_taught(
    alone: Application, collection: str
) -> None:
    name, word = "Quellmoor Zanzifar", "blubberwurstig"
    state.stage_passages(
        alone,
        collection,
        {"id": "work", "title": "The Salt Road", "text": f"The Salt Road was written by {name}. It is {word}."},
        {"id": "author", "title": "A life", "text": "Somebody was born in Emden, by the salt road."},
    )
    alone.jobs.runner.run_ready()
    scope = alone.auth.access.scope(collection)
    question = "Where was the author of The Salt Road born?"
    ids = [run_session(alone, scope, question, top_k=top_k, stop="rounds", learn=True) for top_k in (1, 2)]
    session = sessions_of(alone).sessions.state(scope, ids[0])
    assert any(name in query for query in session.queries)
    (born,) = state.sentences(alone, collection, "author").values()
    for one in ids:
        sessions_of(alone).teacher.judge(
            sessions_of(alone).sessions.state(scope, one), verdict(scope, born), "key", wait=True
        )
    # Whoever asks nearly the same is told of the sub-question, by its words.
    traced = Query(text="Where was Quelmoor Zanzifer born?", scope=scope, include=frozenset({"trace"}))
    later = alone.answers.question.answer(traced)
    assert later.trace is not None
    assert any(name in str(past.past_question) for past in later.trace.recalled)
    assert name in str(alone.answers.episodes.read(scope, later.query_id).trace)
    held = places(alone, name)
    assert {"session", "session_round", "judged_query", "question"} <= held
    assert any(table.startswith("episode_") for table in held)

    history_of(alone).past.request(scope, datetime.now(UTC), f"{collection}-past")
    alone.jobs.runner.run_ready()
    past = alone.auth.access.scope(f"{collection}-past")

    for one in (scope, past):
        alone.corpus.ingest.delete_passage(one, "work")

    assert places(alone, name, word, "Quellmoor", "Zanzifar", "quellmoor zanzifar") == set()
    read = sessions_of(alone).sessions.read(scope, ids[0])
    assert read.stored.question == question
    assert [one.said for one in read.rounds] == [{"erased": True}] * len(read.rounds)
    assert read.notes == []
    assert {one.passage_id for one in read.evidence} <= {"author"}
    for kept in (scope, past):
        undo.assert_verified(alone, kept.collection.name)
