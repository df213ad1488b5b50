"""A reset of what was learned removes the sessions of one collection."""

from dataclasses import replace
from typing import Any

import pytest

from engram.composition.container import Application
from engram.services.auth.scope import LOCAL
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.session_service import NewSession
from engram.wings.sessions.services.session_tools import AskedQuery, StepTools
from tests.services.erasure.test_erasure_service import erase, find_anywhere
from tests.support import state
from tests.support.jobs import run_again
from tests.wings.sessions.test_session_feedback import run_session

TABLES = ("session", "session_round", "session_passage", "session_evidence")


def test_sessions_go_with_the_log_that_their_queries_are_in(
    application: Application, curie: str, collection: str
) -> None:
    state.stage_passages(application, f"{collection}-other", {"id": "bees", "text": "Bees fly."})
    application.jobs.runner.run_ready()
    other = application.auth.access.scope(f"{collection}-other")
    for scope in (application.auth.access.scope(curie), other):
        run_session(application, scope, "What do bees do in Warsaw?")
    assert all(state.rows(application, curie, table) for table in TABLES)
    application.revocation.learning_reset.reset(application.auth.access.scope(curie))
    assert not any(state.rows(application, curie, table) for table in TABLES)
    assert len(state.rows(application, other.collection.name, "session")) == 1


def test_a_question_that_a_round_was_given_goes_with_its_session(application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie, replace(LOCAL, name="oidc:quuxina"))
    sessions = sessions_of(application).sessions
    session = sessions.start(scope, NewSession(question="Where was Marie Curie born?", planner="caller"))
    application.jobs.runner.run_ready()
    sessions.go_on(scope, session, "Where does Xanthippa live?")
    application.jobs.runner.run_ready()
    assert "job" in find_anywhere(application.database, "Xanthippa")
    erase(application, curie, kind="principal", name="oidc:quuxina")
    assert find_anywhere(application.database, "Xanthippa") == {}


def test_a_query_of_a_round_under_way_goes_with_an_erased_session(
    application: Application, curie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = application.auth.access.scope(curie, replace(LOCAL, name="oidc:quuxina"))
    ask = StepTools.ask

    def be_erased_and_ask(tools: StepTools, text: str, **options: Any) -> AskedQuery:
        erase(application, curie, kind="principal", name="oidc:quuxina")
        return ask(tools, text, **options)

    monkeypatch.setattr(StepTools, "ask", be_erased_and_ask)
    sessions_of(application).sessions.start(
        scope, NewSession(question="Where was Marie Curie born?", planner="pool")
    )
    application.jobs.runner.run_ready()
    assert find_anywhere(application.database, "oidc:quuxina") == {}


@pytest.mark.parametrize("is_erased", [True, False])
def test_a_query_of_a_worker_that_was_killed_before_it_wrote_the_round_goes(
    application: Application, curie: str, monkeypatch: pytest.MonkeyPatch, is_erased: bool
) -> None:
    scope = application.auth.access.scope(curie, replace(LOCAL, name="oidc:quuxina"))
    ask = StepTools.ask

    def ask_and_be_killed(tools: StepTools, text: str, **options: Any) -> AskedQuery:
        if is_erased:
            erase(application, curie, kind="principal", name="oidc:quuxina")
        ask(tools, text, **options)
        raise KeyboardInterrupt

    sessions_of(application).sessions.start(
        scope, NewSession(question="Where was Marie Curie born?", planner="pool")
    )
    with monkeypatch.context() as patch:
        patch.setattr(StepTools, "ask", ask_and_be_killed)
        with pytest.raises(KeyboardInterrupt):
            application.jobs.runner.run_ready()
    run_again(application, application.jobs.runner)
    asked = {row["id"] for row in state.rows(application, curie, "episode")}
    kept = {query for row in state.rows(application, curie, "session_round") for query in row["episodes"]}
    assert asked == kept
    assert bool(kept) is not is_erased
