"""Applies a batch of logged verdicts in one transaction.

Before that, ``Intake`` resolves what a verdict names, and logs it. ``LearningService`` decides which verdicts are
learned together, and what becomes of those that cannot be.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import structlog

from engram.context.errors import UnavailableError
from engram.core.filter.states import AUDITED
from engram.core.filter.steps import LearningRule, MovedStates
from engram.services.learning.judge_noise import JudgeNoise
from engram.services.learning.verdict_batch import Batch
from engram.services.learning.weight_teaching import WeightTeaching
from engram.services.passage_keys.attribution import Attribution
from engram.services.passage_keys.key_evolution import KeyEvolutionService
from engram.storage.corpus import collections
from engram.storage.database import Database, Writer
from engram.storage.feedback_log import feedback_events
from engram.storage.feedback_log.feedback_events import PendingEvent
from engram.storage.learning import learned_weights
from engram.telemetry import metrics
from engram.telemetry.stages import stage

log = structlog.get_logger(__name__)


class CollectionBusyError(Exception):
    """Another worker is applying events to the collection."""


class VectorSpaceChangedError(Exception):
    """The collection's vector space changed after the vectors of these events were computed."""


@dataclass(frozen=True, eq=False)
class VerdictPipeline:
    """Learns from logged verdicts: each once, a batch in one transaction with its audit.

    Attributes:
        judge_noise: chooses the constants by which each verdict is applied.
        learning_rule: computes how memories and supports move.
        weight_teaching: computes what verdicts add to the weights of sufficiency and of wings.
        attribution: credits expansions with the passages that they helped to find.
        key_evolution: makes passage keys of expansions.
    """

    database: Database
    judge_noise: JudgeNoise
    learning_rule: LearningRule
    weight_teaching: WeightTeaching
    attribution: Attribution
    key_evolution: KeyEvolutionService

    def learn(self, collection_id: int, events: Sequence[int], *, wait: bool) -> int:
        """Learn those of the events that still wait; return how many they were.

        Args:
            wait: whether to wait while another worker applies events to this collection.

        Raises:
            CollectionBusyError: not ``wait``, and another worker learns this collection.
            VectorSpaceChangedError: the vectors of the questions or of the expansions are of another space than the
                collection is in.
        """
        with stage("attribute"):
            units, space = self.attribution.prepare(collection_id, events)
        with stage("learn"), self.database.write() as writer:
            kind = collections.lock_and_load_kind(writer, collection_id)
            pending = [] if kind is None else _lock_pending(writer, collection_id, events, wait=wait)
            if kind is None or not pending:
                return 0
            if any(event.space != event.served or space not in {event.served, None} for event in pending):
                raise VectorSpaceChangedError
            constants = self.judge_noise.choose(writer, collection_id, pending)
            batch = Batch.lock(writer, collection_id, pending, constants)
            holders = self.weight_teaching.holders(writer, collection_id, pending)
            with writer.ahead():  # Postgres writes the states while the terms of weights are computed
                moved_states = batch.apply(writer, collection_id, self.learning_rule)
                weight_terms = self.weight_teaching.terms(kind, pending, constants, holders, moved_states.contested)
            if units:
                credited_events = [event for event in pending if not constants[event.id].is_new]
                self.attribution.credit(writer, collection_id, credited_events, units)
            for model_prior, terms in weight_terms.items():
                learned_weights.add(writer, collection_id, model_prior, terms)
            feedback_events.mark_applied(writer, collection_id, batch.questions, constants)
        _count(batch, moved_states)
        if units:
            self._evolve_if_due(collection_id)
        return len(pending)

    def _evolve_if_due(self, collection_id: int) -> None:
        """Evolve the passage keys if that is due. A failure is logged, and the evolution stays due."""
        try:
            with stage("evolve"):
                self.key_evolution.evolve_if_due(collection_id)
        except UnavailableError as error:
            log.warning("keys not evolved", collection_id=collection_id, error=error.detail)
        except Exception:
            log.exception("keys not evolved", collection_id=collection_id)


def _lock_pending(writer: Writer, collection_id: int, events: Sequence[int], *, wait: bool) -> list[PendingEvent]:
    """Lock the collection's learning, and those of the events that still wait.

    Raises:
        CollectionBusyError: not ``wait``, and another worker holds the lock.
    """
    if not wait and not collections.claim_learning(writer, collection_id):
        raise CollectionBusyError
    collections.lock_learning(writer, collection_id, exclusive=False)
    return feedback_events.lock_pending(writer, collection_id, events)


def _count(batch: Batch, moved_states: MovedStates) -> None:
    """Count the applied events in the metrics, and log them."""
    audit = moved_states.audit
    metrics.count_ended_verdicts([("applied", len(batch.events)), ("contested", len(moved_states.contested))])
    for event in batch.events:
        metrics.VERDICT_SECONDS.observe(event.waited_seconds)
        metrics.JUDGE_WEIGHT.observe(batch.constants[event.id].standing)
    for channel in np.unique(audit.channels).tolist():
        is_channel = audit.channels == channel
        metrics.GAIN.labels(AUDITED[channel]).observe_all(audit.gains[is_channel])
        metrics.PERPLEXITY.labels(AUDITED[channel]).observe_all(audit.perplexities_after[is_channel])
    moved_rows = Counter(audit.event_ids.tolist())
    for event in batch.events:
        log.info("feedback applied", event_id=event.id, rows=moved_rows[event.id])
