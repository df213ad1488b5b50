"""Retention of sessions: when one goes, and what stays of it."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context.errors import NotFoundError
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.session_service import NewSession
from tests.services.maintenance.test_retention import QUESTION, retention, run
from tests.support import state, undo
from tests.support.databases import application_on
from tests.wings.sessions import test_session_feedback as teach


@pytest.fixture(scope="module")
def application(own: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    """One on a database of its own: sessions of others would end too."""
    with application_on(own, settings, application) as services:
        yield services


def words(application: Application, collection: str, table: str, column: str = "text") -> set[object]:
    return {row[column] for row in state.rows(application, collection, table)}


def test_a_session_goes_with_its_rounds_so_many_days_after_its_end(application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie)
    ended, open_ = (sessions_of(application).sessions.start(scope, NewSession(question=QUESTION)) for _ in range(2))
    sessions_of(application).sessions.wait(scope, ended)
    service = retention(application, queries=30)
    now = datetime.now(UTC)
    assert run(service, now + timedelta(days=29)).derived == 0
    assert run(retention(application), now + timedelta(days=999)).derived == 0
    assert run(service, now + timedelta(days=31)).derived == 1
    assert [row["id"] for row in state.rows(application, curie, "session")] == [str(open_)]
    for table in ("session_round", "session_passage", "session_evidence"):
        assert state.rows(application, curie, table) == []
    with pytest.raises(NotFoundError):
        sessions_of(application).sessions.read(scope, ended)


def test_words_of_its_sub_questions_go_with_it_and_what_they_taught_stays(
    application: Application, curie: str
) -> None:
    scope = application.auth.access.scope(curie)
    session = sessions_of(application).sessions.state(scope, teach.run_session(application, scope))
    said = teach.verdict(scope, *teach.evidence(application, curie))
    sessions_of(application).teacher.judge(session, said, "key", wait=True)
    assert {teach.CHAIN, teach.PART} == words(application, curie, "question")
    before = state.rows(application, curie, "question_support")

    assert run(retention(application, queries=30), datetime.now(UTC) + timedelta(days=31)).derived >= 1

    for table, column in (("question", "text"), ("judged_query", "question")):
        held = words(application, curie, table, column)
        assert teach.CHAIN in held
        assert teach.PART not in held
    assert state.rows(application, curie, "question_support") == before
    undo.assert_verified(application, curie)
