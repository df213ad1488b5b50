"""Which verdicts are learned together, and what becomes of those that cannot be applied."""

from collections.abc import Sequence

import structlog

from engram.context.errors import (
    EmbeddingSpaceMismatchError,
    EmbeddingUnavailableError,
    UnavailableError,
    is_out_of_reach,
)
from engram.services.learning.verdict_pipeline import CollectionBusyError, VectorSpaceChangedError, VerdictPipeline
from engram.storage.database import Database
from engram.storage.feedback_log import feedback_events
from engram.telemetry import metrics

log = structlog.get_logger(__name__)

MAX_SPACE_CHANGES = 5


class LearningService:
    """Applies accepted verdicts, and counts the tries of those that fail."""

    def __init__(self, database: Database, pipeline: VerdictPipeline, *, max_attempts: int) -> None:
        """``max_attempts``: tries after which an event that cannot be applied is parked."""
        self._database = database
        self._pipeline = pipeline
        self._max_attempts = max_attempts

    def apply_alone(self, collection_id: int, events: Sequence[int]) -> int | None:
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

        Raises:
            UnavailableError: Postgres is out of reach, or the vectors are exchanged again and again; the events
                wait.
        """
        try:
            return self._apply(collection_id, events, wait=wait)
        except CollectionBusyError:
            raise
        except Exception as error:
            if is_out_of_reach(error) and not isinstance(error, EmbeddingUnavailableError):
                raise
            if len(events) > 1:
                return sum(self.apply(collection_id, [event], wait=wait) for event in sorted(events))
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
                reader, age_seconds, limit, self._pipeline.attribution.encoder.fingerprints
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

    def _apply(self, collection_id: int, events: Sequence[int], *, wait: bool) -> int:
        for _ in range(MAX_SPACE_CHANGES):
            try:
                return self._pipeline.learn(collection_id, events, wait=wait)
            except VectorSpaceChangedError:
                self._pipeline.attribution.embed_questions_again(collection_id, events)
        raise UnavailableError("The collection is given other vectors again and again.")
