"""A batch of verdicts: lock the states that they speak of, take the steps, write once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engram.core.filter import states
from engram.core.filter.constants import FilterConstants
from engram.core.filter.state_rows import MemoryRows, SupportRows
from engram.core.filter.states import TASK, TIME, Event, Vector
from engram.core.filter.steps import LabelledEvent, LearningRule, MovedStates
from engram.storage.database import Writer
from engram.storage.feedback_log.feedback_events import PendingEvent
from engram.storage.learning import question_supports, sentence_memories


@dataclass(frozen=True, slots=True)
class Batch:
    """Events, and the states that they speak of, as they were when the batch locked them.

    Attributes:
        events: in the order of application.
        constants: event -> constants by which it is applied.
        questions: event -> the question that it teaches, in the order of the events.
        memories: of the judged sentences that exist.
        supports: how surely each of these sentences supports each of the questions.
    """

    events: Sequence[PendingEvent]
    constants: Mapping[int, FilterConstants]
    questions: Mapping[int, int]
    memories: MemoryRows
    supports: SupportRows

    @classmethod
    def lock(
        cls,
        writer: Writer,
        collection_id: int,
        events: Sequence[PendingEvent],
        constants: Mapping[int, FilterConstants],
    ) -> "Batch":
        """Lock all states that the events speak of, and read them. Locked sentences cannot be deleted.

        Locks are taken in the same order by everyone, questions by hash and then sentences by id, so two batches
        that share state wait for each other instead of deadlocking.
        """
        questions = _lock_questions(writer, collection_id, events)
        judged = {sentence for event in events for sentence in event.targets}
        timed = {sentence for event in events if event.time_embedding is not None for sentence in event.targets}
        memories = sentence_memories.lock(writer, collection_id, sorted(judged), sorted(timed))
        supports = question_supports.load_supports(
            writer, collection_id, sorted(set(questions.values())), np.unique(memories.sentence_ids)
        )
        return cls(events, constants, questions, memories, supports)

    def apply(self, writer: Writer, collection_id: int, rule: LearningRule) -> MovedStates:
        """Move the locked states by the rule, and write them with their audit rows."""
        statements = [
            build_statement(event, self.questions[event.id], self.constants[event.id]) for event in self.events
        ]
        moved_states = rule(statements, self.memories, self.supports)
        sentence_memories.store(writer, collection_id, moved_states.memories)
        question_supports.store_supports(writer, collection_id, moved_states.supports)
        sentence_memories.record(writer, collection_id, moved_states.audit)
        return moved_states


def _lock_questions(writer: Writer, collection_id: int, events: Sequence[PendingEvent]) -> dict[int, int]:
    """Lock the questions of the events; return event -> its question."""
    hashed = {event.id: states.question_hash(event.question) for event in events}
    first: dict[bytes, tuple[str, Vector]] = {}
    for event in events:
        first.setdefault(hashed[event.id], (event.question, event.embedding))
    locked = question_supports.lock_questions(writer, collection_id, first)
    return {event: locked[key] for event, key in hashed.items()}


def build_statement(event: PendingEvent, question: int, constants: FilterConstants) -> LabelledEvent:
    """Build the statement of an event on a question, with the noises and caps of these constants.

    Only a question about a time moves time memories.
    """
    confidence = event.verdict.confidence
    timed = {} if event.time_embedding is None else {TIME: event.time_embedding}
    return LabelledEvent(
        Event(
            id=event.id,
            question_id=question,
            judge=constants.name_for_caps(event.judge),
            day=event.day,
            share=constants.share,
            contested_share=constants.contested,
            process_noise=constants.process,
            complete=event.verdict.complete,
            sufficiency=event.sufficiency,
        ),
        targets=event.targets,
        directions={TASK: event.embedding} | timed,
        noise=(constants.observation_noise(0, confidence), constants.observation_noise(1, confidence)),
        probabilities=event.verdict.probabilities,
    )
