"""Which verdicts a revocation is about, and what forgetting all removes: of one collection only."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from engram.composition.container import Application
from engram.context.errors import NotFoundError
from engram.storage.revocation import learned_state, revocations
from engram.storage.revocation.revocations import StartedRevocation, VerdictFilter
from tests.storage.conftest import TaughtCollection
from tests.support import state

DAYS = ("2026-05-01", "2026-05-02", "2026-05-03")


def build_moment(day: str) -> datetime:
    return datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=UTC)


@pytest.fixture
def events(application: Application, curie: str) -> list[int]:
    """Two judges' verdicts at noon of three days, the first of each applied, the others waiting."""
    query_id = state.add_episode(application, curie, "Who?", [])
    found = []
    for day in DAYS:
        for judge in ("one", "other"):
            event = state.judge(application, curie, query_id, judge=judge).event.id
            state.on_day(application, curie, event, day)
            found.append(event)
    application.learning.learner.apply(state.collection_id(application, curie), found[:2])
    return found


def begun(application: Application, name: str, criteria: VerdictFilter) -> StartedRevocation:
    with application.database.write() as writer:
        return revocations.begin(writer, state.collection_id(application, name), criteria)


def list_remaining(
    application: Application, name: str, criteria: VerdictFilter, last: int, limit: int = 2
) -> list[int]:
    """What the job of such a request finds, page after page."""
    target, said = state.collection_id(application, name), criteria.as_json() | {"last": last}
    found: list[int] = []
    with application.database.read() as reader:
        while page := revocations.list_next(reader, target, said, found[-1] if found else 0, limit):
            assert len(page) <= limit
            found += page
    return found


def list_with_status(application: Application, name: str, status: str) -> list[int]:
    return [event for event, now in sorted(state.event_statuses(application, name).items()) if now == status]


@pytest.mark.parametrize(
    ("criteria", "places"),
    [
        (VerdictFilter(), range(6)),
        (VerdictFilter(judge="one"), (0, 2, 4)),
        (VerdictFilter(judge="nobody"), ()),
        (VerdictFilter(since=build_moment(DAYS[1])), (2, 3, 4, 5)),
        (VerdictFilter(before=build_moment(DAYS[1])), (0, 1)),
        (VerdictFilter("other", build_moment(DAYS[0]), build_moment(DAYS[2])), (1, 3)),
    ],
)
def test_pending_verdicts_are_revoked_at_once_and_applied_ones_by_the_job(
    application: Application, curie: str, events: list[int], criteria: VerdictFilter, places: Sequence[int]
) -> None:
    meant = [events[place] for place in places]
    counting = [event for event in meant if event in events[:2]]
    found = begun(application, curie, criteria)
    assert found == StartedRevocation(events[-1], len(meant) - len(counting), len(counting))
    assert list_with_status(application, curie, "revoked") == sorted(set(meant) - set(counting))
    assert list_remaining(application, curie, criteria, found.last, 1) == counting


def test_revocation_excludes_later_verdicts(application: Application, curie: str, events: list[int]) -> None:
    last = begun(application, curie, VerdictFilter()).last
    query_id = state.add_episode(application, curie, "Who?", [])
    later = state.judge(application, curie, query_id, wait=True).event.id
    assert list_remaining(application, curie, VerdictFilter(), last) == events[:2]
    assert list_remaining(application, curie, VerdictFilter(), later) == [*events[:2], later]


def test_a_collection_without_verdicts_and_others_are_left_alone(
    application: Application, curie: str, taught: TaughtCollection
) -> None:
    assert begun(application, curie, VerdictFilter()) == StartedRevocation(0, 0, 0)
    assert list_with_status(application, taught.name, "applied") == taught.events


def test_forgetting_counts_what_goes_and_takes_it_from_one_collection_only(
    application: Application, curie: str, events: list[int], taught: TaughtCollection
) -> None:
    target = state.collection_id(application, curie)
    held = {table: len(state.rows(application, curie, table)) for table in learned_state.TABLES}
    others = {table: state.rows(application, taught.name, table) for table in learned_state.TABLES}
    assert held["feedback_event"] == len(events)
    with application.database.write() as writer:
        assert learned_state.delete_all(writer, target) == held
    with application.database.write() as writer:
        assert learned_state.delete_all(writer, target) == dict.fromkeys(learned_state.TABLES, 0)
    assert {table: state.rows(application, taught.name, table) for table in learned_state.TABLES} == others


def test_deleting_state_of_a_missing_collection_raises(application: Application) -> None:
    with pytest.raises(NotFoundError), application.database.write() as writer:
        learned_state.delete_all(writer, 2**40)
