"""A worker killed with SIGKILL between any two steps: every verdict is applied once, as if nothing had happened."""

import signal
from collections.abc import Mapping

import pytest
import redis

from engram.composition.container import Application
from engram.wings.published.parts import published_of
from tests.faults.conftest import Start, Working
from tests.support import state, twins, undo
from tests.support.campaign import leave_to_campaign
from tests.support.constants import FEEDBACK_BATCH, SWEEP_SECONDS, WAITING_KEY_EVENTS
from tests.support.orphans import KEPT_BY, OUTLIVING, SEARCHES, list_unguarded, orphans
from tests.support.processes import eventually

VERDICTS = 24
BATCH = 8
# Two batches are through, or half through, when it dies.
STEPS = {
    "before the locks": ("engram.storage.corpus.collections:lock_learning", "before", "2"),
    "with sentences locked": (
        "engram.storage.learning.question_supports:hold_sentences",
        "after",
        "2",
    ),
    "memories written": ("engram.wings.published.storage.sentence_memories:store", "after", "2"),
    "supports written": ("engram.storage.learning.question_supports:store_supports", "after", "2"),
    "audit written": ("engram.storage.feedback_log.audit_rows:record", "after", "3"),
    "credits written": ("engram.wings.published.storage.key_credits:add_evidence", "after", "2"),
    "expansion memories written": ("engram.wings.published.storage.key_credits:refresh_memory", "after", "2"),
    "weights added": ("engram.storage.learning.learned_weights:add", "after", "2"),
    "marked and not committed": ("engram.storage.feedback_log.feedback_events:mark_applied", "after", "2"),
    "committed and not acknowledged": ("engram.storage.wake_stream:WakeStream.acknowledge", "before", "2"),
}
EVOLVING = {
    "with a generation opened": ("engram.wings.published.storage.key_generations:open_next", "after"),
    "with keys written": ("engram.wings.published.storage.evolved_keys:replace_keys", "after"),
    "evolved and not committed": ("engram.wings.published.storage.evolved_keys:set_progress", "after", "2"),
    "evolved and not acknowledged": ("engram.storage.wake_stream:WakeStream.acknowledge", "before"),
}
ORDINARY = ("before the locks", "weights added", "committed and not acknowledged")
"""One step before the transaction, one inside it, and one after it."""
ORDINARY_EVOLVING = ("evolved and not committed", "evolved and not acknowledged")


@pytest.fixture
def twin(application: Application, curie: str) -> str:
    """The same passages once more."""
    return twins.create_twin(application, f"{curie}-twin")


def kill_and_recover(
    application: Application, collection: str, twin: str, start: Start, working: Working, *where: str, **env: str
) -> None:
    events = undo.stream(application, collection, VERDICTS, seed=7)
    untouched = undo.stream(application, twin, VERDICTS, seed=7)
    twins.set_aside(application, twin)
    with redis.Redis.from_url(application.addresses.redis_url) as client:
        client.flushdb()
    for event in events:
        application.stream.wake([(state.collection_id(application, collection), event)])

    dying = start("worker", *where, **env)
    assert dying.wait_for_end() == -signal.SIGKILL, dying.output

    with working():
        eventually(lambda: set(state.event_statuses(application, collection).values()) == {"applied"})

    assert [row["attempts"] for row in state.rows(application, collection, "feedback_event")] == [0] * VERDICTS
    assert orphans(application, collection) == {}
    undo.assert_verified(application, collection)
    twins.assert_as_without_fault(application, collection, events, twin, untouched)
    undo.assert_verified(application, collection)


@pytest.mark.parametrize("step", leave_to_campaign(STEPS, ordinary=ORDINARY))
def test_killed_while_it_applies(
    application: Application, curie: str, twin: str, start: Start, working: Working, step: str
) -> None:
    env: Mapping[str, str] = {FEEDBACK_BATCH: str(BATCH), SWEEP_SECONDS: "3600"}
    kill_and_recover(application, curie, twin, start, working, *STEPS[step], **env)


@pytest.mark.parametrize("step", leave_to_campaign(EVOLVING, ordinary=ORDINARY_EVOLVING))
def test_killed_while_keys_evolve(
    application: Application, curie: str, twin: str, start: Start, working: Working, step: str
) -> None:
    env: Mapping[str, str] = {WAITING_KEY_EVENTS: "1", SWEEP_SECONDS: "3600"}
    kill_and_recover(application, curie, twin, start, working, *EVOLVING[step], **env)
    assert [row["number"] for row in state.rows(application, curie, "key_generation")] == [1]


def test_events_of_a_killed_worker_are_taken_over(
    application: Application,
    curie: str,
    start: Start,
    working: Working,
    stream: "redis.Redis",
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events = undo.stream(application, curie, 4, seed=8)
    dying = start("worker", "engram.storage.corpus.collections:lock_learning", "before", **{SWEEP_SECONDS: "3600"})
    assert dying.wait_for_end() == -signal.SIGKILL, dying.output
    monkeypatch.setattr("engram.storage.wake_stream.CLAIM_IDLE_MS", 0)
    with working({SWEEP_SECONDS: 3600.0}):
        eventually(lambda: set(state.event_statuses(application, curie).values()) == {"applied"})
        eventually(lambda: stream.xlen("engram:feedback") == 0)
    assert sorted(state.list_applied_order(application, curie)) == events


DAMAGES: tuple[tuple[str, set[str]], ...] = (
    (
        "UPDATE entity_sentence SET passage_id = passage_id + 1",
        {"entity_sentence of another passage than its sentence is of"},
    ),
    (
        "DELETE FROM lexical_term",
        {"lexical_posting without its term or passage", "lexical_passage without a term"},
    ),
    (
        "DELETE FROM key_generation",
        {"evidence of a generation that is not there", "collection that serves a generation that is not there"},
    ),
    ("DELETE FROM key_credit", {"expansion_unit that is credited to nothing"}),
    ("UPDATE feedback_event SET applied_sequence = 1", {"two events of one place in the order"}),
    (
        "UPDATE feedback_event SET status = 'pending'",
        {
            "memory_audit of an event that is not applied",
            "weight_audit of an event that is not applied",
            "key_evidence of an event that is not applied",
            "event that says when it was applied, and is not",
            "question without a verdict",
        },
    ),
    ("UPDATE feedback_event SET status = 'applied'", set()),
    ("DELETE FROM question", {"feedback_event without its question"}),
)
"""What is done to the rows of a collection, one after the other -> what the search finds besides."""


class TestOrphans:
    """The search itself finds what it is for."""

    def test_every_column_that_no_foreign_key_guards_is_searched_or_may_outlive(self) -> None:
        assert list_unguarded() == set(KEPT_BY) | set(OUTLIVING)
        assert set(KEPT_BY.values()) <= set(SEARCHES)

    def test_orphaned_rows_are_detected(self, application: Application, curie: str) -> None:
        undo.apply(application, curie, undo.stream(application, curie, 8, seed=9), 8)
        published_of(application).evolve.evolve(application.auth.access.scope(curie))
        before: set[str] = set()
        assert orphans(application, curie) == {}
        for statement, found in DAMAGES:
            with application.database.write() as writer:
                assert writer.execute(
                    f"{statement} WHERE collection_id = %(c)s", {"c": state.collection_id(application, curie)}
                )
            after = set(orphans(application, curie))
            assert after - before == found, statement
            before = after
