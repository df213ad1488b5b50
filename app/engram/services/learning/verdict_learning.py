"""Learning from verdicts: each event is applied once, in one transaction with its audit."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import structlog

from engram.context.errors import (
    EmbeddingSpaceMismatchError,
    EmbeddingUnavailableError,
    UnavailableError,
    is_out_of_reach,
)
from engram.core.filter.constants import FilterConstants
from engram.core.filter.states import AUDITED
from engram.core.filter.steps import LearningRule, MovedStates
from engram.core.ranking.question_memory import EVEN_ODDS
from engram.services.learning.verdict_batch import Batch
from engram.services.learning.weight_teaching import WeightTeaching
from engram.services.passage_keys.attribution import Attribution
from engram.services.passage_keys.key_evolution import KeyEvolutionService
from engram.services.retrieval.question_spreads import QuestionSpreads
from engram.storage.corpus import collections, current_vectors
from engram.storage.database import Database, Reader
from engram.storage.feedback_log import feedback_events, judge_standings
from engram.storage.feedback_log.feedback_events import PendingEvent
from engram.storage.feedback_log.judge_standings import OpposedWord
from engram.storage.learning import judges, learned_weights
from engram.storage.learning.judges import JudgeSettings
from engram.telemetry import metrics
from engram.telemetry.stages import stage

log = structlog.get_logger(__name__)

MAX_SPACE_CHANGES = 5


class _TakenError(Exception):
    """Another worker is applying events to the collection."""


class _OtherSpaceError(Exception):
    """The collection has changed to another vector space since vectors were read or made for these events."""


class LearningService:
    """Applies accepted verdicts: moves memories and supports, teaches weights, credits expansions."""

    def __init__(
        self,
        database: Database,
        constants: FilterConstants,
        rule: LearningRule,
        weights: WeightTeaching,
        attribution: Attribution,
        evolve: KeyEvolutionService,
        spreads: QuestionSpreads,
        *,
        max_attempts: int,
    ) -> None:
        self._database = database
        self._attribution = attribution
        self._evolve = evolve
        self._spreads = spreads
        self._constants = constants
        self._rule = rule
        self._weights = weights
        self._max_attempts = max_attempts

    def apply_alone(self, collection_id: int, events: Sequence[int]) -> int | None:
        """Apply events for a worker; None, with nothing done, while another worker applies to the collection.

        So no two workers wait for each other's rows, and collections spread over workers. An event whose caller
        waits is applied at the same time. Both lock rows in one order: slower, but correct.
        """
        try:
            return self.apply(collection_id, events, alone=True)
        except _TakenError:
            return None

    def apply(self, collection_id: int, events: Sequence[int], *, alone: bool = False) -> int:
        """Apply those of the events that still wait, all at once; return how many were applied.

        If the batch fails while Postgres is within reach, its events are tried one by one. An event that cannot be
        applied, or not in the time that a statement has, is noted and in the end parked, so it holds nobody back.
        An event whose expansions another encoder has to embed waits for a worker that runs this encoder.

        Raises:
            UnavailableError: Postgres is out of reach, or the vectors are exchanged again and again; the events
                wait.
        """
        try:
            return self._apply(collection_id, events, alone=alone)
        except _TakenError:
            raise
        except Exception as error:
            if is_out_of_reach(error) and not isinstance(error, EmbeddingUnavailableError):
                raise
            if len(events) > 1:
                return sum(self.apply(collection_id, [event], alone=alone) for event in sorted(events))
            if isinstance(error, (EmbeddingSpaceMismatchError, EmbeddingUnavailableError)):
                self._leave(collection_id, events[0], error.detail)
                return 0
            log.exception("event not applied", event_id=events[0])
            self._note_failure(collection_id, events[0], f"{type(error).__name__}: {error}")
            return 0

    def _leave(self, collection_id: int, event: int, reason: str) -> None:
        log.warning("event left to another worker", event_id=event, reason=reason)
        with self._database.write_once() as writer:
            feedback_events.say_why(writer, collection_id, event, reason)

    def _note_failure(self, collection_id: int, event: int, reason: str) -> None:
        with self._database.write() as writer:
            parked = feedback_events.record_failure(writer, collection_id, event, reason, self._max_attempts)
        metrics.count_ended_verdicts([("parked" if parked else "failed", 1)])
        if parked:
            log.error("feedback parked", collection_id=collection_id, event_id=event, reason=reason)

    def apply_overdue(self, age_seconds: float, limit: int) -> int:
        """Apply events whose wake-up was lost and that need no other encoder; return how many were applied."""
        with self._database.read() as reader:
            overdue = feedback_events.list_overdue(
                reader, age_seconds, limit, self._attribution.encoder.fingerprints
            )
        by_collection: dict[int, list[int]] = {}
        for collection_id, event in overdue:
            by_collection.setdefault(collection_id, []).append(event)
        return sum(self._apply_apart(collection_id, waiting) for collection_id, waiting in by_collection.items())

    def _apply_apart(self, collection_id: int, events: Sequence[int]) -> int:
        """Apply one collection's events; log a failure, so that other collections do not wait."""
        try:
            return self.apply_alone(collection_id, events) or 0
        except UnavailableError:
            raise
        except Exception:
            log.exception("collection not learned", collection_id=collection_id)
            return 0

    def _apply(self, collection_id: int, events: Sequence[int], *, alone: bool) -> int:
        for _ in range(MAX_SPACE_CHANGES):
            try:
                return self._apply_in(collection_id, events, alone=alone)
            except _OtherSpaceError:
                self._attribution.ask_anew(collection_id, events)
        raise UnavailableError("The collection is given other vectors again and again.")

    def _apply_in(self, collection_id: int, events: Sequence[int], *, alone: bool) -> int:
        """Apply the events by vectors of the space that the collection is in.

        Raises:
            _TakenError: ``alone``, and another worker is applying events to the collection.
            _OtherSpaceError: the vectors of the questions or of the expansions are of another space.
        """
        with stage("attribute"):
            units, space = self._attribution.prepare(collection_id, events)
        with stage("learn"), self._database.write() as writer:
            kind = collections.lock_and_load_kind(writer, collection_id)
            if kind is None:
                return 0
            if alone and not collections.claim_learning(writer, collection_id):
                raise _TakenError
            collections.lock_learning(writer, collection_id, alone=False)
            pending = feedback_events.lock_pending(writer, collection_id, events)
            if not pending:
                return 0
            if any(event.space != event.served or space not in {event.served, None} for event in pending):
                raise _OtherSpaceError
            constants = self._choose_constants(writer, collection_id, pending)
            batch = Batch.lock(writer, collection_id, pending, constants)
            holders = self._weights.holders(writer, collection_id, pending)
            with writer.ahead():  # Postgres writes the states while the terms of weights are computed
                moved_states = batch.apply(writer, collection_id, self._rule)
                taught = self._weights.terms(kind, pending, constants, holders, moved_states.contested)
            if units:
                credited_events = [event for event in pending if not constants[event.id].is_new]
                self._attribution.credit(writer, collection_id, credited_events, units)
            for believed, terms in taught.items():
                learned_weights.add(writer, collection_id, believed, terms)
            feedback_events.mark_applied(writer, collection_id, batch.questions, constants)
        _count(batch, moved_states)
        moved_rows = Counter(moved_states.audit.event_ids.tolist())
        for event in pending:
            log.info("feedback applied", event_id=event.id, rows=moved_rows[event.id])
        if units:
            self._evolve_if_due(collection_id)
        return len(pending)

    def _choose_constants(
        self, reader: Reader, collection_id: int, events: Sequence[PendingEvent]
    ) -> dict[int, FilterConstants]:
        """Choose each event's constants: its judge's.

        New judges get less; so does an untrusted judge's word against others on a reworded question.
        """
        set_for = judges.find(reader, collection_id, {event.judge for event in events})
        constants = {event.id: set_for.get(event.judge, JudgeSettings()).adapt(self._constants) for event in events}
        named = {judge for judge, own in set_for.items() if own.trusted}
        unknown = [event for event in events if not event.trusted and event.judge not in named]
        if not unknown:
            return constants
        standings = judge_standings.standings(
            reader, collection_id, {(event.judge, event.day) for event in unknown}
        )
        constants |= {
            event.id: constants[event.id].adapt_to_standing(standings[event.judge, event.day]) for event in unknown
        }
        reworded = self._find_reworded(reader, collection_id, unknown, constants)
        return constants | {event: constants[event].reduce_for_rewording() for event in reworded}

    def _find_reworded(
        self,
        reader: Reader,
        collection_id: int,
        events: Sequence[PendingEvent],
        constants: Mapping[int, FilterConstants],
    ) -> set[int]:
        """Find the events that go against others on a question that most probably has the same need."""
        opposed = judge_standings.find_opposed_words(reader, collection_id, events, constants)
        current = current_vectors.find_current(reader, collection_id) if opposed else None
        if current is None:
            return set()
        collection = collections.load_by_id(reader, collection_id)
        by_event: dict[int, list[OpposedWord]] = {}
        for word in opposed:
            by_event.setdefault(word.event, []).append(word)
        asked = {event.id: event for event in events}
        return {
            event
            for event, words in by_event.items()
            if any(
                need.probability >= EVEN_ODDS
                for need in self._spreads.compare(
                    reader, collection, current, asked[event].question, asked[event].embedding, words
                ).values()
            )
        }

    def _evolve_if_due(self, collection_id: int) -> None:
        """Let the keys evolve if it is due. If that fails, they stay due, and the events stay applied."""
        try:
            with stage("evolve"):
                self._evolve.evolve_if_due(collection_id)
        except UnavailableError as error:
            log.warning("keys not evolved", collection_id=collection_id, error=error.detail)
        except Exception:
            log.exception("keys not evolved", collection_id=collection_id)


def _count(batch: Batch, moved_states: MovedStates) -> None:
    """Count the applied events in the metrics."""
    audit = moved_states.audit
    metrics.count_ended_verdicts([("applied", len(batch.events)), ("contested", len(moved_states.contested))])
    for event in batch.events:
        metrics.VERDICT_SECONDS.observe(event.waited_seconds)
        metrics.JUDGE_WEIGHT.observe(batch.constants[event.id].standing)
    for channel in np.unique(audit.channels).tolist():
        is_channel = audit.channels == channel
        metrics.GAIN.labels(AUDITED[channel]).observe_all(audit.gains[is_channel])
        metrics.PERPLEXITY.labels(AUDITED[channel]).observe_all(audit.perplexities_after[is_channel])
