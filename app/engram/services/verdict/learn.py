"""Learning from logged verdicts: each once, a batch in one transaction with its audit.

What verdicts change are effects (``services/effects``). A batch takes all of them through the same steps, in order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from engram.context.errors import (
    EmbeddingSpaceMismatchError,
    EmbeddingUnavailableError,
    UnavailableError,
    describe_publicly,
    is_out_of_reach,
)
from engram.core.learning.noise_and_caps import NoiseAndCaps
from engram.services.encoders.encoder import Encoder
from engram.storage.corpus import collections
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database, Reader, Writer
from engram.storage.feedback_log import feedback_events, judged_queries
from engram.storage.feedback_log.feedback_events import PendingEvent
from engram.telemetry import metrics
from engram.telemetry.stages import stage

log = structlog.get_logger(__name__)

MAX_SPACE_CHANGES = 5
"""Times that a batch embeds its questions again because the collection was given other vectors meanwhile."""
ConstantsChoice = Callable[[Reader, int, Sequence[PendingEvent]], Mapping[int, NoiseAndCaps]]
"""Chooses event -> the constants by which it is applied, for locked events of a collection."""


class CollectionBusyError(Exception):
    """Another worker is applying events to the collection."""


class VectorSpaceChangedError(Exception):
    """The collection's vector space changed after the vectors of these events were computed."""


@dataclass(slots=True)
class VerdictBatch:
    """Locked events of a collection that are applied together.

    Attributes:
        collection: locked against deletion.
        events: in the order of application.
        constants: event -> constants by which it is applied.
        questions: event -> the question that it teaches, in the order of the events; once these are locked.
        contested: events that contradict what other judges said; once the question memory is changed.
        observed: ``BatchObservations`` of the question memory, for effects that come later.
    """

    collection: Collection
    events: Sequence[PendingEvent]
    constants: Mapping[int, NoiseAndCaps]
    questions: Mapping[int, int] = field(default_factory=dict)
    contested: frozenset[int] = frozenset()
    observed: Any = None


class BatchEffect:
    """An effect of one batch; its steps are called in this order, and do nothing unless a subclass says what.

    Attributes:
        space: vector space of what the effect embedded; None if it embedded nothing.
        follows_log: whether ``DerivedState.copy`` makes all that the effect would do of the log.
    """

    space: int | None = None
    follows_log: bool = False

    def lock(self, writer: Writer, batch: VerdictBatch) -> None:
        """Lock the rows that the effect changes, in one order for everybody."""

    def load(self, reader: Reader, batch: VerdictBatch) -> None:
        """Read what else the effect needs."""

    def change(self, writer: Writer, batch: VerdictBatch) -> None:
        """Compute the change. Postgres may write what this sends while the next effect computes: read nothing."""

    def record(self, writer: Writer, batch: VerdictBatch) -> None:
        """Write what is not written yet."""

    def finish(self, batch: VerdictBatch) -> None:
        """Do what follows from the change, once it is committed."""


PrepareEffect = Callable[[int, Sequence[int]], BatchEffect]
"""Prepares an effect for events of a collection. No transaction is open, so this may embed texts."""


@dataclass(frozen=True, eq=False)
class VerdictLearner:
    """Applies accepted verdicts, and counts the tries of those that fail.

    Attributes:
        encoder: embeds questions again whose collection was given other vectors.
        effects: in the order in which their rows are locked.
        max_attempts: tries after which an event that cannot be applied is parked.
    """

    database: Database
    encoder: Encoder
    choose_constants: ConstantsChoice
    effects: Sequence[PrepareEffect]
    max_attempts: int

    def apply_unless_busy(self, collection_id: int, events: Sequence[int]) -> int | None:
        """Apply events for a worker; None, with nothing done, while another worker applies to the collection.

        So no two workers wait for each other's rows, and collections spread over workers. An event whose caller
        waits is applied at the same time. Both lock rows in one order: slower, but correct.
        """
        try:
            return self.apply(collection_id, events, wait=False)
        except CollectionBusyError:
            return None

    def apply(self, collection_id: int, events: Sequence[int], *, wait: bool = True) -> int:
        """Apply those of the events that still wait, all at once; return how many were applied.

        If the batch fails while Postgres is within reach, its events are tried one by one. An event that cannot be
        applied, or not in the time that a statement has, is noted and in the end parked, so it holds nobody back.
        An event whose expansions another encoder has to embed waits for a worker that runs this encoder.

        Args:
            wait: whether to wait while another worker applies events to this collection.

        Raises:
            CollectionBusyError: not ``wait``, and another worker learns this collection.
            UnavailableError: Postgres is out of reach, or the vectors are exchanged again and again; the events
                wait.
        """
        try:
            return self._learn_in_current_space(collection_id, events, wait=wait)
        except CollectionBusyError:
            raise
        except Exception as error:
            if is_out_of_reach(error) and not isinstance(error, EmbeddingUnavailableError):
                raise
            if len(events) > 1:
                return sum(self.apply(collection_id, [event], wait=wait) for event in sorted(events))
            if isinstance(error, (EmbeddingSpaceMismatchError, EmbeddingUnavailableError)):
                self._note_other_encoder(collection_id, events[0], error.public_detail)
                return 0
            log.exception("event not applied", event_id=events[0])
            self._note_failure(collection_id, events[0], describe_publicly(error))
            return 0

    def apply_overdue(self, age_seconds: float, limit: int) -> int:
        """Apply events whose wake-up was lost and that need no other encoder; return how many were applied."""
        with self.database.read() as reader:
            overdue = feedback_events.list_overdue(reader, age_seconds, limit, self.encoder.fingerprints)
        by_collection: dict[int, list[int]] = {}
        for collection_id, event in overdue:
            by_collection.setdefault(collection_id, []).append(event)
        applied = 0
        for collection_id, events in by_collection.items():
            try:
                applied += self.apply_unless_busy(collection_id, events) or 0
            except UnavailableError:
                raise
            except Exception:  # so that other collections do not wait
                log.exception("collection not learned", collection_id=collection_id)
        return applied

    def _learn_in_current_space(self, collection_id: int, events: Sequence[int], *, wait: bool) -> int:
        for _ in range(MAX_SPACE_CHANGES):
            try:
                return self._learn(collection_id, events, wait=wait)
            except VectorSpaceChangedError:
                self._embed_questions_again(collection_id, events)
        raise UnavailableError("The collection is given other vectors again and again.")

    def _learn(self, collection_id: int, events: Sequence[int], *, wait: bool) -> int:
        """Learn those of the events that still wait; return how many they were.

        Raises:
            CollectionBusyError: as ``apply``.
            VectorSpaceChangedError: the vectors of the questions or of an effect are of another space than the
                collection is in.
        """
        with stage("attribute"):
            effects = [prepare(collection_id, events) for prepare in self.effects]
        with stage("learn"), self.database.write() as writer:
            collection = collections.lock_and_load(writer, collection_id)
            pending = [] if collection is None else _lock_pending(writer, collection_id, events, wait=wait)
            if collection is None or not pending:
                return 0
            spaces = {effect.space for effect in effects} - {None}
            if any(event.space != event.current_space or spaces - {event.current_space} for event in pending):
                raise VectorSpaceChangedError
            batch = VerdictBatch(collection, pending, self.choose_constants(writer, collection_id, pending))
            for effect in effects:
                effect.lock(writer, batch)
            for effect in effects:
                effect.load(writer, batch)
            with writer.ahead():
                for effect in effects:
                    effect.change(writer, batch)
            for effect in effects:
                effect.record(writer, batch)
            feedback_events.mark_applied(writer, collection_id, batch.questions, batch.constants)
        _count(batch)
        for effect in effects:
            effect.finish(batch)
        return len(pending)

    def _embed_questions_again(self, collection_id: int, events: Sequence[int]) -> None:
        """Embed the questions of these events again where another encoder than the collection's did.

        Nothing was learned of them yet.

        Raises:
            NotFoundError: the collection is gone.
            EmbeddingSpaceMismatchError: its vectors are of another encoder than this process runs.
        """
        with self.database.read() as reader:
            collection = collections.load_by_id(reader, collection_id)
            judged = judged_queries.list_of_other_spaces(reader, collection_id, events, collection.space)
        questions = sorted({one.question for one in judged})
        times = sorted({one.time_constraint for one in judged if one.time_constraint is not None} - set(questions))
        vectors = {text: self.encoder.embed_questions(collection, [text])[0] for text in questions}
        vectors |= {text: self.encoder.embed(collection, [text])[0] for text in times}
        with self.database.write() as writer:
            if not collections.lock_against_deletion(writer, collection_id):
                raise collections.build_gone_error(collection.name)
            judged_queries.put(writer, collection_id, judged, vectors, collection.space)

    def _note_other_encoder(self, collection_id: int, event: int, reason: str) -> None:
        log.warning("event left to another worker", event_id=event, reason=reason)
        with self.database.write_once() as writer:
            feedback_events.say_why(writer, collection_id, event, reason)

    def _note_failure(self, collection_id: int, event: int, reason: str) -> None:
        with self.database.write() as writer:
            parked = feedback_events.record_failure(writer, collection_id, event, reason, self.max_attempts)
        metrics.count_ended_verdicts([("parked" if parked else "failed", 1)])
        if parked:
            log.error("feedback parked", collection_id=collection_id, event_id=event, reason=reason)


def _lock_pending(writer: Writer, collection_id: int, events: Sequence[int], *, wait: bool) -> list[PendingEvent]:
    """Lock the collection's learning, and those of the events that still wait.

    Raises:
        CollectionBusyError: not ``wait``, and another worker holds the lock.
    """
    if not wait and not collections.claim_learning(writer, collection_id):
        raise CollectionBusyError
    collections.lock_learning(writer, collection_id, exclusive=False)
    return feedback_events.lock_pending(writer, collection_id, events)


def _count(batch: VerdictBatch) -> None:
    """Count the applied events in the metrics."""
    metrics.count_ended_verdicts([("applied", len(batch.events)), ("contested", len(batch.contested))])
    for event in batch.events:
        metrics.VERDICT_SECONDS.observe(event.waited_seconds)
        metrics.JUDGE_WEIGHT.observe(batch.constants[event.id].standing)
