"""Effect on memories: of sentences, and of which sentences answer a question."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import structlog

from engram.core.filter import states
from engram.core.filter.constants import FilterConstants
from engram.core.filter.state_rows import MemoryRows, SupportRows
from engram.core.filter.states import AUDITED, TASK, TIME, AuditRows, Event, SentenceRevisions, Vector
from engram.core.filter.steps import LabelledEvent, LearningRule
from engram.services.verdict.learn import BatchEffect, VerdictBatch
from engram.storage.database import Reader, Writer
from engram.storage.feedback_log.feedback_events import PendingEvent
from engram.storage.learning import question_supports, sentence_memories
from engram.telemetry import metrics

log = structlog.get_logger(__name__)


class MemoryEffect:
    """Moves the memories of judged sentences, and how surely each supports the question.

    Args:
        rule: computes how they move.
    """

    def __init__(self, rule: LearningRule) -> None:
        self._rule = rule

    def begin(self, collection_id: int, events: Sequence[int]) -> BatchEffect:
        """Prepare nothing."""
        return _MovedMemories(self._rule)


class _MovedMemories(BatchEffect):
    _memories: MemoryRows
    _supports: SupportRows
    _audit: AuditRows
    _revisions: Mapping[int, SentenceRevisions]

    def __init__(self, rule: LearningRule) -> None:
        self._rule = rule

    def lock(self, writer: Writer, batch: VerdictBatch) -> None:
        """Lock the questions and the judged sentences. Locked sentences cannot be deleted.

        Locks are taken in the same order by everyone, questions by hash and then sentences by id, so two batches
        that share state wait for each other instead of deadlocking.
        """
        batch.questions = _lock_questions(writer, batch.collection_id, batch.events)
        judged = {sentence for event in batch.events for sentence in event.targets}
        timed = {
            sentence for event in batch.events if event.time_embedding is not None for sentence in event.targets
        }
        self._memories = sentence_memories.lock(writer, batch.collection_id, sorted(judged), sorted(timed))
        self._revisions = sentence_memories.load_revisions(writer, batch.collection_id, sorted(judged))

    def load(self, reader: Reader, batch: VerdictBatch) -> None:
        """Read how surely each sentence supports each of the questions."""
        questions = sorted(set(batch.questions.values()))
        self._supports = question_supports.load_supports(
            reader, batch.collection_id, questions, np.unique(self._memories.sentence_ids)
        )

    def apply(self, writer: Writer, batch: VerdictBatch) -> None:
        """Move the locked states by the rule, and write them with their audit rows."""
        statements = [
            build_statement(event, batch.questions[event.id], batch.constants[event.id], self._revisions)
            for event in batch.events
        ]
        moved_states = self._rule(statements, self._memories, self._supports)
        batch.contested = moved_states.contested
        self._audit = moved_states.audit
        sentence_memories.store(writer, batch.collection_id, moved_states.memories)
        question_supports.store_supports(writer, batch.collection_id, moved_states.supports)
        sentence_memories.record(writer, batch.collection_id, moved_states.audit)

    def finish(self, batch: VerdictBatch) -> None:
        """Count the moves in the metrics, and log the events."""
        audit = self._audit
        for channel in np.unique(audit.channels).tolist():
            is_channel = audit.channels == channel
            metrics.GAIN.labels(AUDITED[channel]).observe_all(audit.gains[is_channel])
            metrics.PERPLEXITY.labels(AUDITED[channel]).observe_all(audit.perplexities_after[is_channel])
        moved_rows = Counter(audit.event_ids.tolist())
        for event in batch.events:
            log.info("feedback applied", event_id=event.id, rows=moved_rows[event.id])


def _lock_questions(writer: Writer, collection_id: int, events: Sequence[PendingEvent]) -> dict[int, int]:
    """Lock the questions of the events; return event -> its question."""
    hashed = {event.id: states.question_hash(event.question) for event in events}
    first: dict[bytes, tuple[str, Vector]] = {}
    for event in events:
        first.setdefault(hashed[event.id], (event.question, event.embedding))
    locked = question_supports.lock_questions(writer, collection_id, first)
    return {event: locked[key] for event, key in hashed.items()}


def build_statement(
    event: PendingEvent, question: int, constants: FilterConstants, revisions: Mapping[int, SentenceRevisions]
) -> LabelledEvent:
    """Build the statement of an event on a question, with the noises and caps of these constants.

    Only a question about a time moves time memories.

    Args:
        revisions: of those sentences that were revised.
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
        texts={
            sentence: revisions[sentence].find_text(event.answered_at)
            for sentence in event.targets
            if sentence in revisions
        },
    )
