"""Verdicts that could not be applied, and wait again once the cause is mended."""

from dataclasses import dataclass

import structlog

from engram.context.errors import ConflictError
from engram.services.auth.scope import Scope
from engram.storage.corpus import collections
from engram.storage.corpus.collections import VERDICT, Collection
from engram.storage.database import Database
from engram.storage.feedback_log import feedback_events
from engram.storage.feedback_log.feedback_events import VerdictEvent
from engram.storage.wake_stream import WakeStream

log = structlog.get_logger(__name__)

WAKES = 1_000
"""Wake-ups that a retry of many events sends; the sweep finds the rest."""


@dataclass(frozen=True, eq=False)
class ParkedVerdicts:
    """Lets parked verdicts wait again, with all their tries."""

    database: Database
    stream: WakeStream

    def retry(self, scope: Scope, event_id: int) -> VerdictEvent:
        """Retry one; its error can be read until it is applied.

        Raises:
            NotFoundError: there is no such event, or the collection was deleted meanwhile.
            ConflictError: it is not parked.
        """
        target = scope.collection
        retried = self._unpark(target, event=event_id)
        with self.database.read() as reader:
            event = feedback_events.find(reader, target.id, event_id)
        if event is None:
            raise collections.build_missing_resource_error(VERDICT, event_id)
        if not retried:
            raise ConflictError(f"Feedback {event_id} is {event.status}; only what is parked can be retried.")
        return event

    def retry_all(self, scope: Scope, judge: str | None = None) -> int:
        """Retry all, or all of one judge; return how many there were.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
        """
        return len(self._unpark(scope.collection, judge=judge))

    def _unpark(self, target: Collection, *, event: int | None = None, judge: str | None = None) -> list[int]:
        with self.database.write() as writer:
            if not collections.lock_against_deletion(writer, target.id):
                raise collections.build_gone_error(target.name)
            events = feedback_events.unpark(writer, target.id, event=event, judge=judge)
        self.stream.wake([(target.id, waiting) for waiting in events[:WAKES]])
        if events:
            log.info("feedback retried", collection_id=target.id, events=len(events))
        return events
