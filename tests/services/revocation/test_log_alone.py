"""The log of verdicts needs no answered query: it keeps what verdicts go by, and all learning follows from it."""

import pytest

from engram.composition.container import Application
from engram.context.errors import NotFoundError
from tests.support import evolving, state, undo


@pytest.fixture
def events(application: Application, curie: str) -> list[int]:
    """Verdicts at every scope, the last four of which wait."""
    events = undo.stream(application, curie, 20, seed=23)
    undo.apply(application, curie, events[:10], 10)
    evolving.evolve(application, application.auth.access.scope(curie))
    undo.apply(application, curie, events[10:16], 3)
    return events


def test_learned_state_verifies_without_episodes(application: Application, curie: str, events: list[int]) -> None:
    scope = application.auth.access.scope(curie)
    before, verified = undo.list_learned(application, curie), application.revocation.verification.verify(scope)
    undo.delete_episodes(application, curie)
    undo.assert_same(undo.list_learned(application, curie), before)
    assert application.revocation.verification.verify(scope) == verified
    assert verified.differences == []
    assert state.event_statuses(application, curie) == dict.fromkeys(events[:16], "applied") | dict.fromkeys(
        events[16:], "pending"
    )


def test_waiting_verdicts_are_applied_and_revoked_ones_leave_nothing(
    application: Application, curie: str, events: list[int]
) -> None:
    undo.delete_episodes(application, curie)
    undo.apply(application, curie, events[16:], 2)
    taken = events[1::4]
    for event in taken:
        assert (
            application.learning.revocation.revoke(application.auth.access.scope(curie), event).status == "revoked"
        )
    undo.assert_verified(application, curie)
    after = undo.list_learned(application, curie)

    undo.forgotten(application, curie)
    undo.apply(application, curie, [event for event in events[:10] if event not in taken])
    evolving.evolve(application, application.auth.access.scope(curie))
    undo.apply(application, curie, [event for event in events[10:] if event not in taken])
    undo.assert_same(undo.list_learned(application, curie), after)


def test_verdict_on_a_deleted_episode_is_refused(application: Application, curie: str, events: list[int]) -> None:
    (judged, *_) = state.rows(application, curie, "judged_query")
    undo.delete_episodes(application, curie)
    with pytest.raises(NotFoundError, match="no query"):
        state.judge(application, curie, judged["id"])
    assert len(state.rows(application, curie, "feedback_event")) == len(events)


def test_verdicts_on_one_answer_share_what_they_go_by(
    application: Application, curie: str, events: list[int]
) -> None:
    episodes = {row["id"]: row for row in state.rows(application, curie, "episode")}
    judged = {row["id"]: row for row in state.rows(application, curie, "judged_query")}
    assert judged.keys() == {row["query_id"] for row in state.rows(application, curie, "feedback_event")}
    assert len(judged) < len(events)
    columns = judged[next(iter(judged))].keys() - {"answered_at", "filter", "sufficiency"}
    for query, row in judged.items():
        assert {column: row[column] for column in columns} == {
            column: episodes[query][column] for column in columns
        }
        assert row["answered_at"] == episodes[query]["created_at"]
        assert row["sufficiency"] == episodes[query]["answer"]["sufficiency"]
