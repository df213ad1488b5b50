"""A batch of verdicts: lock the states that they speak of, take the steps, write once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engram.core.filter import states
from engram.core.filter.judge_standing import NEWCOMERS
from engram.core.filter.state_rows import MemoryRows, SupportRows
from engram.core.filter.states import TASK, TIME, AuditRows, Event, Vector
from engram.core.filter.steps import EventStatement, LearningRule
from engram.services.learning.feedback_policy import FeedbackPolicy
from engram.storage.database import Writer
from engram.storage.feedback_log.feedback_events import PendingEvent
from engram.storage.learning import question_supports, sentence_memories

Targets = Mapping[int, Mapping[int, int]]
"""Event -> sentence -> y, see ``LoggedVerdict.targets``."""


@dataclass(frozen=True, slots=True)
class LockedStates:
    """The states that a batch moves, as they were when it locked them.

    Attributes:
        questions: event -> the question that it teaches.
        known: memories of the sentences that are there.
        supports: what the questions know of these.
    """

    questions: Mapping[int, int]
    known: MemoryRows
    supports: SupportRows


class Batch:
    """One batch.

    Locks are taken in the same order by everyone, questions by hash and then sentences by id, so two batches
    that share state wait for each other instead of deadlocking.
    """

    def __init__(
        self,
        writer: Writer,
        collection_id: int,
        rule: LearningRule,
        noises: Mapping[int, FeedbackPolicy],
        events: Sequence[PendingEvent],
        targets: Targets,
    ) -> None:
        self._writer = writer
        self._collection_id = collection_id
        self._rule = rule
        self._noises = noises
        self._events = events
        self._targets = targets
        self.contested: frozenset[int] = frozenset()
        """Events that go against what other judges said of a sentence, once it has run."""

    def lock(self) -> LockedStates:
        """Lock all states that the events speak of, and read them; what they name stays as long as they are."""
        questions = self._lock_questions()
        memories = self._lock_memories()
        return LockedStates(questions, memories, self._supports(questions, memories))

    def run(self, locked: LockedStates) -> AuditRows:
        """Move what is locked; what moved."""
        moved_states = self._rule(
            [
                EventStatement(
                    build_event(event, locked.questions[event.id], noise),
                    self._targets[event.id],
                    directions(event),
                    (
                        noise.observation_noise(0, event.verdict.confidence),
                        noise.observation_noise(1, event.verdict.confidence),
                    ),
                    event.verdict.probabilities,
                )
                for event in self._events
                for noise in (self._noises[event.id],)
            ],
            locked.known,
            locked.supports,
        )
        self.contested = moved_states.contested
        sentence_memories.store(self._writer, self._collection_id, moved_states.memories)
        question_supports.store_supports(self._writer, self._collection_id, moved_states.supports)
        return moved_states.audit

    def _lock_questions(self) -> dict[int, int]:
        hashed = {event.id: states.question_hash(event.question) for event in self._events}
        first: dict[bytes, tuple[str, Vector]] = {}
        for event in self._events:
            first.setdefault(hashed[event.id], (event.question, event.embedding))
        locked = question_supports.lock_questions(self._writer, self._collection_id, first)
        return {event: locked[key] for event, key in hashed.items()}

    def _lock_memories(self) -> MemoryRows:
        judged = {sentence for targets in self._targets.values() for sentence in targets}
        timed = {
            sentence
            for event in self._events
            if event.time_embedding is not None
            for sentence in self._targets[event.id]
        }
        return sentence_memories.lock(self._writer, self._collection_id, sorted(judged), sorted(timed))

    def _supports(self, questions: Mapping[int, int], memories: MemoryRows) -> SupportRows:
        """Return the supports that the questions have of existing sentences."""
        alive = np.unique(memories.sentence_ids)
        return question_supports.load_supports(
            self._writer, self._collection_id, sorted(set(questions.values())), alive
        )


def build_event(event: PendingEvent, question: int, noise: FeedbackPolicy) -> Event:
    """The event as it counts for a question, by the judge's constants."""
    return Event(
        id=event.id,
        question_id=question,
        judge=NEWCOMERS if noise.is_new else event.judge,
        day=event.day,
        share=noise.share,
        contested_share=noise.contested,
        process_noise=noise.process,
        complete=event.verdict.complete,
        sufficiency=event.sufficiency,
    )


def directions(event: PendingEvent) -> dict[str, Vector]:
    """Channel -> what its memories move along; only a question of time moves time memories."""
    timed = {} if event.time_embedding is None else {TIME: event.time_embedding}
    return {TASK: event.embedding} | timed
