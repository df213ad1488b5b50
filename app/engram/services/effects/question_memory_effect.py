"""Effect on the question memory: which sentences answer a question."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import structlog

from engram.core.learning import states
from engram.core.learning.noise_and_caps import NoiseAndCaps
from engram.core.learning.state_rows import SupportRows
from engram.core.learning.states import AUDITED, AuditRows, Event, SentenceRevisions, Vector
from engram.core.learning.steps import LabelledEvent, LearningRule
from engram.services.verdict.learn import BatchEffect, VerdictBatch
from engram.storage.corpus import sentence_revisions
from engram.storage.database import Reader, Writer
from engram.storage.feedback_log import audit_rows
from engram.storage.feedback_log.feedback_events import PendingEvent
from engram.storage.learning import question_supports
from engram.telemetry import metrics

log = structlog.get_logger(__name__)


class QuestionMemoryEffect(BatchEffect):
    """Moves how surely each judged sentence supports the question.

    Args:
        rule: computes how supports move.
    """

    _sentences: Sequence[int]
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
        batch.questions = _lock_questions(writer, batch.collection.id, batch.events)
        judged = {sentence for event in batch.events for sentence in event.targets}
        self._sentences = question_supports.hold_sentences(writer, batch.collection.id, sorted(judged))
        self._revisions = sentence_revisions.load(writer, batch.collection.id, self._sentences)

    def load(self, reader: Reader, batch: VerdictBatch) -> None:
        """Read how surely each sentence supports each of the questions."""
        questions = sorted(set(batch.questions.values()))
        self._supports = question_supports.load_supports(
            reader, batch.collection.id, questions, np.array(self._sentences, dtype=np.int64)
        )

    def change(self, writer: Writer, batch: VerdictBatch) -> None:
        """Move the locked states by the rule, and write them with their audit rows."""
        labelled = [
            label_event(event, batch.questions[event.id], batch.constants[event.id], self._revisions)
            for event in batch.events
        ]
        changes = self._rule(labelled, self._sentences, self._supports)
        batch.observed, batch.contested = changes.observed, changes.observed.contested
        self._audit = changes.audit
        question_supports.store_supports(writer, batch.collection.id, changes.supports)
        audit_rows.record(writer, batch.collection.id, changes.audit)

    def finish(self, batch: VerdictBatch) -> None:
        """Count the moves in the metrics, and log the events."""
        observe_moves(self._audit)
        moved_rows = Counter(self._audit.event_ids.tolist())
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


def label_event(
    event: PendingEvent, question: int, constants: NoiseAndCaps, revisions: Mapping[int, SentenceRevisions]
) -> LabelledEvent:
    """Label the sentences of an event on a question, with the noises and caps of these constants.

    Args:
        revisions: of those sentences that were revised.
    """
    confidence = event.verdict.confidence
    return LabelledEvent(
        Event(
            id=event.id,
            question_id=question,
            judge=constants.name_for_caps(event.judge),
            day=event.day,
            share=constants.share,
            contested_share=constants.contested,
            process_noise=constants.process,
            noise=(constants.observation_noise(0, confidence), constants.observation_noise(1, confidence)),
            complete=event.verdict.complete,
            sufficiency=event.sufficiency,
        ),
        targets=event.targets,
        probabilities=event.verdict.probabilities,
        texts={
            sentence: revisions[sentence].find_text(event.answered_at)
            for sentence in event.targets
            if sentence in revisions
        },
    )


def observe_moves(audit: AuditRows) -> None:
    """Count gains and perplexities of these moves, by channel."""
    for channel in np.unique(audit.channels).tolist():
        is_channel = audit.channels == channel
        metrics.GAIN.labels(AUDITED[channel]).observe_all(audit.gains[is_channel])
        metrics.PERPLEXITY.labels(AUDITED[channel]).observe_all(audit.perplexities_after[is_channel])
