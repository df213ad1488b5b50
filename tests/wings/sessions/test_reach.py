"""What a verdict on a session moves beyond the queries that it reaches; all of it is undone and replayed."""

from datetime import UTC, datetime
from typing import Any

from engram.composition.container import Application
from engram.services.question.query import Query
from engram.wings.history.parts import history_of
from engram.wings.published.parts import published_of
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.session_service import NewSession
from engram.wings.sessions.services.session_state import SessionRequest, SessionState
from engram.wings.why.parts import why_of
from tests.conftest import CURIE, Ingest
from tests.support import state, undo
from tests.wings.sessions.test_session_feedback import CHAIN, PART, evidence, run_session, verdict


def judge_session(application: Application, collection: str) -> tuple[SessionState, list[int]]:
    """A session, and the verdicts that one on it became, applied."""
    scope = application.auth.access.scope(collection)
    session = sessions_of(application).sessions.state(scope, run_session(application, scope))
    said = verdict(scope, *evidence(application, collection))
    receipts = sessions_of(application).teacher.judge(session, said, "key", wait=True)
    assert {one.event.status for one in receipts} == {"applied"}
    return session, [one.event.id for one in receipts]


def test_session_verdict_moves_ranking_and_sufficiency_weights(
    application: Application, ingest: Ingest, collection: str
) -> None:
    others = [{"id": f"town{n}", "text": f"Town {n} lies on river {n}, which flows into a sea."} for n in range(12)]
    ingest(*CURIE, *others)
    scope = application.auth.access.scope(collection)
    session = sessions_of(application).sessions.state(scope, run_session(application, scope, top_k=5))
    said = verdict(scope, *evidence(application, collection))
    own, *parts = [one.event.id for one in sessions_of(application).teacher.judge(session, said, "key", wait=True)]
    assert parts
    moved = {(row["model"], row["event_id"]) for row in state.rows(application, collection, "weight_audit")}
    # Only the own question was asked for all of the evidence; of a sub-question nobody says that it was enough.
    assert moved == {("sufficiency", own)}
    undo.assert_verified(application, collection)
    for event in (own, *parts):
        application.learning.revocation.revoke(scope, event)
    assert state.rows(application, collection, "weight_audit") == []
    undo.assert_verified(application, collection)


def test_session_verdict_says_at_which_round_the_pool_was_complete(application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie)
    session = sessions_of(application).sessions.state(scope, run_session(application, scope))
    born, lies, flows = evidence(application, curie)
    by_round = {number: [one.sentence_id for one in session.pool if one.round == number] for number in (1, 2)}
    teacher = sessions_of(application).teacher
    assert teacher.complete_at(session, verdict(scope, by_round[1][0])) == 1
    assert teacher.complete_at(session, verdict(scope, by_round[1][0], by_round[2][-1])) == 2
    (elsewhere, *_) = state.sentences(application, curie, "tokyo").values()
    assert teacher.complete_at(session, verdict(scope, born, elsewhere)) is None
    assert teacher.complete_at(session, verdict(scope, born, lies, flows, partial=True)) is None


def test_parts_of_a_session_verdict_become_keys_and_go_with_it(application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie)
    service = sessions_of(application).sessions
    begun = service.start(scope, NewSession(question=CHAIN, planner="caller", request=SessionRequest(top_k=2)))
    for question in (CHAIN, "the birthplace of Marie Curie"):
        service.go_on(scope, begun, question)
        application.jobs.runner.run_ready()
    said = verdict(scope, *evidence(application, curie), retrieval_success=True)
    receipts = sessions_of(application).teacher.judge(service.state(scope, begun), said, "key", wait=True)

    (unit,) = state.rows(application, curie, "expansion_unit")
    assert (unit["method"], unit["text"]) == ("decomposition", "the birthplace of Marie Curie")
    assert {row["unit_id"] for row in state.rows(application, curie, "key_credit")} == {unit["id"]}
    assert published_of(application).evolve.evolve(scope) is not None
    assert any(unit["id"] in row["units"] for row in state.rows(application, curie, "passage_key"))
    undo.assert_verified(application, curie)
    for receipt in receipts:
        application.learning.revocation.revoke(scope, receipt.event.id)
    assert not any(row["units"] for row in state.rows(application, curie, "passage_key"))
    undo.assert_verified(application, curie)


def test_an_answer_says_why_and_a_past_moment_is_without_it(application: Application, curie: str) -> None:
    scope = application.auth.access.scope(curie)
    begun = datetime.now(UTC)
    _, events = judge_session(application, curie)
    (born, *_) = evidence(application, curie)
    assert {one.event_id for one in why_of(application).explain.sentence(scope, born).events} & set(events)
    answer = application.answers.question.answer(Query(text=f"{PART}?", scope=scope, include=frozenset({"trace"})))
    assert answer.trace is not None
    behind = {
        cause.event_id for hop in answer.trace.hops for sentence in hop.sentences for cause in sentence.influences
    }
    assert behind
    assert behind <= set(events)
    past, now = f"{curie}-before", f"{curie}-now"
    for moment, name in ((begun, past), (datetime.now(UTC), now)):
        history_of(application).past.request(scope, moment, name)
        application.jobs.runner.run_ready()
    assert state.list_learned(application, now)["sentence_memory"]
    assert not state.list_learned(application, past)["sentence_memory"]
    undo.assert_verified(application, now)


def suffices(session: SessionState) -> list[dict[str, Any]]:
    return [one.said["suffices"] for one in session.rounds]


def test_rounds_end_once_the_pool_is_enough(application: Application, curie: str) -> None:
    """Under the rule "sufficiency" a later round is told by the pool."""
    scope = application.auth.access.scope(curie)
    steps = {"arm": {"memory": "off", "profile": "default", "strategy": "graph"}}
    told = sessions_of(application).sessions.state(scope, run_session(application, scope, stop="rounds", **steps))
    first, second, *_ = suffices(told)
    least = second["probability"] - 1e-6
    assert (told.rounds[0].sufficiency or 0.0) < least
    ends = sessions_of(application).sessions.state(
        scope, run_session(application, scope, stop="sufficiency", threshold=least, **steps)
    )
    assert (ends.stop_reason, len(ends.rounds)) == ("sufficiency", 2)
    assert suffices(ends) == [first, second]
