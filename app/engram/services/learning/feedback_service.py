"""Verdicts: accepting them, and what became of them."""

import time
from dataclasses import dataclass

import structlog

from engram.context import tenancy
from engram.context.errors import ConflictError
from engram.core.filter.logged_verdict import LoggedVerdict
from engram.core.filter.states import Audit
from engram.services.auth.scope import Scope
from engram.services.learning.incoming_verdict import Verdict
from engram.services.learning.verdict_intake import Intake
from engram.services.learning.verdict_learning import LearningService
from engram.storage.corpus import collections
from engram.storage.corpus.collections import VERDICT, Collection
from engram.storage.database import Database, Reader
from engram.storage.feedback_log import audit_rows, feedback_events, logged_verdicts
from engram.storage.feedback_log.feedback_events import StoredVerdictEvent
from engram.storage.passage_keys import key_history
from engram.storage.passage_keys.key_history import KeyEffect
from engram.storage.wake_stream import WakeStream

log = structlog.get_logger(__name__)

WAIT_SECONDS = 10.0
CREDITS = 200  # that are shown of one event
WAKES = 1_000  # that a retry of many sends; the sweep finds the rest


@dataclass(frozen=True, slots=True)
class Receipt:
    """An accepted event; if it was waited for, what it changed and what its expansions came to, if it has any."""

    event: StoredVerdictEvent
    changes: list[Audit] | None = None
    keys: KeyEffect | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail(Receipt):
    """An event as it stands, with what it says."""

    verdict: LoggedVerdict


class FeedbackService:
    """Accepts verdicts and reports on them."""

    def __init__(self, database: Database, stream: WakeStream, intake: Intake, learn: LearningService) -> None:
        self._database = database
        self._stream = stream
        self._intake = intake
        self._learn = learn

    def accept(self, verdict: Verdict, key: str, *, wait: bool = False) -> Receipt:
        """Store the verdict under its Idempotency-Key and have it applied, here if ``wait``.

        The same verdict again gets the first receipt.

        Raises:
            NotFoundError, GoneError, InvalidRequestError, IdempotencyConflictError, EmbeddingSpaceMismatchError: as
                ``Intake.accept``.
        """
        event = self._intake.accept(verdict, key, announced=not wait)
        return self.apply_event(event) if wait else Receipt(event)

    def apply_event(self, event: StoredVerdictEvent) -> Receipt:
        """Apply the event here, or wait for the worker that holds it."""
        collection_id = event.collection_id
        deadline = time.monotonic() + WAIT_SECONDS
        while event.status == "pending" and time.monotonic() < deadline:
            with tenancy.allow_all_readers():  # what it teaches does not depend on who waits for it
                applied = self._learn.apply(collection_id, [event.id])
            if not applied:
                time.sleep(0.02)
            with self._database.read() as reader:
                event = feedback_events.find(reader, collection_id, event.id) or event
        with self._database.read() as reader:
            return _receipt(reader, event)

    def event(self, scope: Scope, event_id: int) -> Detail:
        """An event, its verdict and what it changed so far.

        Raises:
            NotFoundError: there is no such event, or it is not for this principal to see.
        """
        target = scope.collection
        with self._database.read() as reader:
            event = feedback_events.find(reader, target.id, event_id)
            if event is None or not scope.sees(event.principal):
                raise collections.build_missing_resource_error(VERDICT, event_id)
            receipt = _receipt(reader, event)
            verdict = logged_verdicts.read(reader, target.id, [event_id])[event_id]
        return Detail(receipt.event, receipt.changes, receipt.keys, verdict=verdict)

    def retry(self, scope: Scope, event_id: int) -> Receipt:
        """Let a parked event wait again, with all its tries; its error can be read until it is applied.

        Raises:
            NotFoundError: there is no such event, or the collection was deleted meanwhile.
            ConflictError: it is not parked.
        """
        target = scope.collection
        retried = self._unpark(target, event=event_id)
        with self._database.read() as reader:
            event = feedback_events.find(reader, target.id, event_id)
        if event is None:
            raise collections.build_missing_resource_error(VERDICT, event_id)
        if not retried:
            raise ConflictError(f"Feedback {event_id} is {event.status}; only what is parked can be retried.")
        return Receipt(event)

    def retry_all(self, scope: Scope, judge: str | None = None) -> int:
        """Let all parked events wait again, or all of one judge; how many there were.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
        """
        return len(self._unpark(scope.collection, judge=judge))

    def _unpark(self, target: Collection, *, event: int | None = None, judge: str | None = None) -> list[int]:
        with self._database.write() as writer:
            if not collections.lock_against_deletion(writer, target.id):
                raise collections.build_gone_error(target.name)
            events = feedback_events.unpark(writer, target.id, event=event, judge=judge)
        self._stream.wake([(target.id, waiting) for waiting in events[:WAKES]])
        if events:
            log.info("feedback retried", collection_id=target.id, events=len(events))
        return events


def _receipt(reader: Reader, event: StoredVerdictEvent) -> Receipt:
    """The event with everything it changed so far."""
    changes = audit_rows.read(reader, event.collection_id, [event.id])[event.id]
    return Receipt(event, changes, key_history.effect(reader, event.collection_id, event.id, CREDITS))
