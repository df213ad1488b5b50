"""A reset of what was learned removes the sessions of one collection."""

from engram.composition.container import Application
from tests.support import state
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
