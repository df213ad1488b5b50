"""Verdicts in the log: what is written reads the same again, and what is of an unknown version not at all."""

from uuid import UUID, uuid4

import pytest

from engram.composition.container import Application
from engram.core.learning.logged_verdict import Expansion, LikelySupport, LoggedVerdict
from engram.storage.feedback_log import event_intake, logged_verdicts
from engram.storage.feedback_log.feedback_events import VerdictEvent
from tests.support import state

FULL = LoggedVerdict(
    supports=(3, 5, 8),
    rejects=(4, 2**40),
    missed=(5,),
    partial=True,
    retrieval_success=False,
    generation_success=True,
    generation_score=0.25,
    passages=(2, 7),
    spared=(4, 5, 6),
    expansions=(Expansion("hyde", "B"), Expansion("facets", "a, b"), Expansion("hyde", "A")),
    confidence=0.3,
)
VERDICTS = [
    LoggedVerdict(),
    FULL,
    LoggedVerdict(retrieval_success=True, generation_success=False, generation_score=1.0, confidence=1.0),
    LoggedVerdict(rejects=(1,)),
    LoggedVerdict(supports=(4,), rejects=(1, 3, 9), examined=(0.25, 1.0, 0.01), partial=True),
    LoggedVerdict(rejects=(1, 9), examined=(0.25, 1.0), likely=(LikelySupport(3, 0.5), LikelySupport(7, 1.0))),
]


@pytest.fixture
def query_id(application: Application, curie: str) -> UUID:
    return state.add_episode(application, curie, "Where was Marie Curie born?", [])


def append_verdicts(
    application: Application, collection: str, query_id: UUID, said: dict[str, list[LoggedVerdict]]
) -> list[int | None]:
    """The verdicts by their keys, stored by one statement."""
    target = state.collection_id(application, collection)
    new = [
        VerdictEvent(
            collection_id=target,
            query_id=query_id,
            idempotency_key=key,
            body_hash=b"hash",
            judge="judge",
            logged=verdict,
        )
        for key, some in said.items()
        for verdict in some
    ]
    with application.database.write_once() as writer:
        return [None if one is None else one.id for one in event_intake.append(writer, new, check=False)]


def read(application: Application, collection: str, events: list[int]) -> dict[int, LoggedVerdict]:
    with application.database.read() as reader:
        return logged_verdicts.read(reader, state.collection_id(application, collection), events)


def test_batched_verdicts_read_back_individually(application: Application, curie: str, query_id: UUID) -> None:
    events = append_verdicts(application, curie, query_id, {uuid4().hex: [verdict] for verdict in VERDICTS})
    assert read(application, curie, [event for event in events if event]) == dict(
        zip(events, VERDICTS, strict=True)
    )
    for event, verdict in zip(events, VERDICTS, strict=True):
        assert event is not None
        assert read(application, curie, [event]) == {event: verdict}


def test_only_the_first_verdict_under_a_key_is_stored(application: Application, curie: str, query_id: UUID) -> None:
    event, *others = append_verdicts(application, curie, query_id, {"once": [VERDICTS[3], FULL], "again": [FULL]})
    assert others[0] is None
    assert event is not None
    assert read(application, curie, [event]) == {event: VERDICTS[3]}
    assert append_verdicts(application, curie, query_id, {"once": [FULL]}) == [None]
    assert read(application, curie, [event]) == {event: VERDICTS[3]}
    assert len(state.rows(application, curie, "verdict_expansion")) == len(FULL.expansions)


def test_used_key_copies_no_other_query(application: Application, curie: str, query_id: UUID) -> None:
    append_verdicts(application, curie, query_id, {"once": [FULL]})
    other = state.add_episode(application, curie, "Who?", [])
    assert append_verdicts(application, curie, other, {"once": [FULL]}) == [None]
    assert [row["id"] for row in state.rows(application, curie, "judged_query")] == [str(query_id)]


def test_expansions_are_loaded_only_for_events_that_have_them(
    application: Application, curie: str, query_id: UUID
) -> None:
    first, second = append_verdicts(application, curie, query_id, {"first": [FULL], "second": [LoggedVerdict()]})
    assert first is not None
    assert second is not None
    with application.database.read() as reader:
        found = logged_verdicts.expansions(reader, state.collection_id(application, curie), [first, second])
    assert found == {first: list(FULL.expansions)}


@pytest.mark.parametrize("version", [1, logged_verdicts.VERSION + 1])
def test_verdict_of_another_version_is_refused(
    application: Application, curie: str, query_id: UUID, version: int
) -> None:
    known, unknown = append_verdicts(application, curie, query_id, {"known": [FULL], "unknown": [FULL]})
    assert known is not None
    assert unknown is not None
    with application.database.write() as writer:
        writer.execute(
            "UPDATE feedback_event SET version = %(version)s WHERE id = %(id)s", {"version": version, "id": unknown}
        )
    assert read(application, curie, [known]) == {known: FULL}
    with pytest.raises(ValueError, match=f"feedback {unknown} is a verdict of version {version}"):
        read(application, curie, [known, unknown])
