"""A batch of verdicts takes all effects through the same steps, in one transaction."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from engram.composition.container import Application
from engram.context.errors import UnavailableError
from engram.services.verdict.learn import BatchEffect, VerdictBatch
from engram.storage.database import Reader, Writer
from tests.support import state

QUESTION = "Where was Marie Curie born?"
STEPS = ("lock", "load", "change", "record")


class NotedEffect(BatchEffect):
    """An effect that notes its steps and changes nothing.

    Args:
        notes: gets (name, step).
        failing: step that raises.
        space: that it embedded for.
    """

    def __init__(
        self, name: str, notes: list[tuple[str, str]], failing: str = "", space: int | None = None
    ) -> None:
        self.name, self.notes, self.failing, self.space = name, notes, failing, space

    def prepare(self, collection_id: int, events: Sequence[int]) -> BatchEffect:
        """Note the preparation."""
        self._note("prepare")
        return self

    def _note(self, step: str) -> None:
        self.notes.append((self.name, step))
        if step == self.failing:
            raise ValueError(f"{step} failed")

    def lock(self, writer: Writer, batch: VerdictBatch) -> None:
        self._note("lock")

    def load(self, reader: Reader, batch: VerdictBatch) -> None:
        self._note("load")

    def change(self, writer: Writer, batch: VerdictBatch) -> None:
        self._note("change")

    def record(self, writer: Writer, batch: VerdictBatch) -> None:
        self._note("record")

    def finish(self, batch: VerdictBatch) -> None:
        self._note("finish")


@pytest.fixture
def event(application: Application, curie: str) -> int:
    """A verdict that waits."""
    query_id = state.add_episode(application, curie, QUESTION, [])
    return state.judge(application, curie, query_id, state.list_sentence_ids(application, curie)[:1]).event.id


def test_each_step_is_taken_by_all_effects_before_the_next(
    application: Application, curie: str, event: int
) -> None:
    notes: list[tuple[str, str]] = []
    effects = [
        NotedEffect("first", notes).prepare,
        *application.learning.learner.effects,
        NotedEffect("last", notes).prepare,
    ]

    applied = replace(application.learning.learner, effects=effects).apply(
        state.collection_id(application, curie), [event]
    )

    assert applied == 1
    assert notes == [(name, step) for step in ("prepare", *STEPS, "finish") for name in ("first", "last")]


@pytest.mark.parametrize("step", STEPS)
def test_an_effect_that_fails_takes_all_others_back(
    application: Application, curie: str, event: int, step: str
) -> None:
    notes: list[tuple[str, str]] = []
    effects = [*application.learning.learner.effects, NotedEffect("failing", notes, failing=step).prepare]
    before = state.list_learned(application, curie)

    applied = replace(application.learning.learner, effects=effects).apply(
        state.collection_id(application, curie), [event]
    )

    assert applied == 0
    assert notes[-1] == ("failing", step)
    assert state.list_learned(application, curie) == before
    (row,) = state.rows(application, curie, "feedback_event")
    assert (row["status"], row["attempts"], row["error"]) == ("pending", 1, f"ValueError: {step} failed")


def test_an_event_that_was_applied_goes_through_no_step(application: Application, curie: str, event: int) -> None:
    target, notes = state.collection_id(application, curie), list[tuple[str, str]]()
    assert application.learning.learner.apply(target, [event]) == 1
    learner = replace(application.learning.learner, effects=[NotedEffect("only", notes).prepare])
    assert learner.apply(target, [event]) == 0
    assert notes == [("only", "prepare")]


def test_what_an_effect_embedded_for_another_space_is_not_learned(
    application: Application, curie: str, event: int
) -> None:
    notes: list[tuple[str, str]] = []
    learner = replace(application.learning.learner, effects=[NotedEffect("other", notes, space=2**20).prepare])
    with pytest.raises(UnavailableError, match="other vectors again and again"):
        learner.apply(state.collection_id(application, curie), [event])
    assert set(notes) == {("other", "prepare")}
