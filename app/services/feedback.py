"""Accepting verdicts: store each once, wake a worker; and what became of them."""

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import structlog

from app.errors import ConflictError, IdempotencyConflictError, NotFoundError
from app.services.learn import LearnService
from app.services.verdict import Verdict, look_up, named_by_id, resolved
from app.storage import collections, episodes, feedback, key_history
from app.storage.database import Database, Reader
from app.storage.feedback import StoredEvent
from app.storage.key_history import KeyEffect
from app.storage.memories import AuditRow
from app.storage.stream import WakeStream

log = structlog.get_logger(__name__)

WAIT_SECONDS = 10.0
CREDITS = 200  # that are shown of one event
WAKES = 1_000  # that a retry of many sends; the sweep finds the rest


@dataclass(frozen=True, slots=True)
class _Arriving:
    """A verdict on its way into the log; ``announced``: a worker is to apply it."""

    verdict: Verdict
    key: str
    body_hash: bytes
    announced: bool


@dataclass(frozen=True, slots=True)
class Receipt:
    """An accepted event; if it was waited for, what it changed and what its expansions came to, if it has any."""

    event: StoredEvent
    changes: list[AuditRow] | None
    keys: KeyEffect | None = None


class FeedbackService:
    """Accepts verdicts and reports on them."""

    def __init__(self, database: Database, stream: WakeStream, learn: LearnService) -> None:
        self._database = database
        self._stream = stream
        self._learn = learn

    def accept(self, verdict: Verdict, key: str, *, wait: bool = False) -> Receipt:
        """Store the verdict under its Idempotency-Key and have it applied, here if ``wait``.

        The same verdict again gets the first receipt.

        Raises:
            NotFoundError: the query or the collection does not exist.
            InvalidRequestError: a named sentence does not exist, or is both supported and rejected.
            IdempotencyConflictError: the key was used with another verdict.
        """
        body_hash = hashlib.sha256(json.dumps(asdict(verdict), sort_keys=True, default=str).encode()).digest()
        arriving = _Arriving(verdict, key, body_hash, announced=not wait)
        target, event = self._accept_known(arriving) or self._accept_looked_up(arriving)
        if event.body_hash != body_hash:
            raise IdempotencyConflictError(f"Idempotency-Key {key!r} was used before with another verdict.")
        return self._wait(target, event) if wait else Receipt(event, None)

    def _accept_known(self, arriving: _Arriving) -> tuple[int, StoredEvent] | None:
        """Store a verdict that names sentences by their ids alone, which takes one look at the database.

        None if there is something to look up, or to complain about, or it was accepted before.
        """
        found = named_by_id(arriving.verdict)
        if found is None:
            return None
        return self._store(arriving, resolved(arriving.verdict, found), sorted(found.sentences))

    def _accept_looked_up(self, arriving: _Arriving) -> tuple[int, StoredEvent]:
        """Store the verdict, or find what was stored under its key before."""
        verdict, key = arriving.verdict, arriving.key
        with self._database.read() as reader:
            met = feedback.arrival(reader, verdict.collection, key, verdict.query_id)
            if met is None:
                raise collections.missing(verdict.collection)
            if met.first is not None:
                return met.collection_id, met.first
            if not met.has_episode:
                raise episodes.missing(verdict.query_id)
            found = look_up(reader, met.collection_id, verdict)
        stored = self._store(arriving, resolved(verdict, found))
        if stored is not None:
            return stored
        with self._database.read() as reader:  # the same key, at the same time
            first = feedback.by_key(reader, met.collection_id, key)
        if first is None:
            raise NotFoundError(f"Collection {verdict.collection!r} was deleted meanwhile.")
        return met.collection_id, first

    def _store(
        self, arriving: _Arriving, as_kept: dict[str, Any], sentences: Sequence[int] = ()
    ) -> tuple[int, StoredEvent] | None:
        """Store and announce a verdict; its collection and the event, None as ``storage.feedback.accept``."""
        verdict = arriving.verdict
        with self._database.write_once() as writer:
            stored = feedback.accept(
                writer,
                verdict.collection,
                episode=verdict.query_id,
                key=arriving.key,
                body_hash=arriving.body_hash,
                judge=verdict.judge,
                verdict=as_kept,
                sentences=sentences,
            )
        if stored is not None:
            target, event = stored
            log.info("feedback accepted", event_id=event.id, query_id=str(event.query_id), judge=event.judge)
            if arriving.announced:
                self._stream.wake(target, event.id)
        return stored

    def event(self, collection: str, event_id: int) -> Receipt:
        """An event and what it changed so far.

        Raises:
            NotFoundError: there is no such event or collection.
        """
        with self._database.read() as reader:
            target = collections.find(reader, collection)
            event = feedback.find(reader, target.id, event_id)
            if event is None:
                raise NotFoundError(f"There is no feedback {event_id} in collection {collection!r}.")
            return _receipt(reader, target.id, event)

    def page(self, collection: str, *, status: str | None, after: int, limit: int) -> list[StoredEvent]:
        """Events in order of acceptance."""
        with self._database.read() as reader:
            target = collections.find(reader, collection)
            return feedback.page(reader, target.id, status=status, after=after, limit=limit)

    def retry(self, collection: str, event_id: int) -> Receipt:
        """Let a parked event wait again, with all its tries; its error can be read until it is applied.

        Raises:
            NotFoundError: there is no such event or collection.
            ConflictError: it is not parked.
        """
        with self._database.read() as reader:
            target = collections.find(reader, collection)
        retried = self._unpark(target.id, event=event_id)
        with self._database.read() as reader:
            event = feedback.find(reader, target.id, event_id)
        if event is None:
            raise NotFoundError(f"There is no feedback {event_id} in collection {collection!r}.")
        if not retried:
            raise ConflictError(f"Feedback {event_id} is {event.status}; only what is parked can be retried.")
        return Receipt(event, None)

    def retry_all(self, collection: str, judge: str | None = None) -> int:
        """Let all parked events wait again, or all of one judge; how many there were.

        Raises:
            NotFoundError: there is no such collection.
        """
        with self._database.read() as reader:
            target = collections.find(reader, collection)
        return len(self._unpark(target.id, judge=judge))

    def _unpark(self, collection_id: int, *, event: int | None = None, judge: str | None = None) -> list[int]:
        with self._database.write() as writer:
            collections.keep(writer, collection_id)
            events = feedback.unpark(writer, collection_id, event=event, judge=judge)
        for waiting in events[:WAKES]:
            if not self._stream.wake(collection_id, waiting):
                break
        if events:
            log.info("feedback retried", collection_id=collection_id, events=len(events))
        return events

    def _wait(self, collection_id: int, event: StoredEvent) -> Receipt:
        """Apply the event here, or wait for the worker that holds it."""
        deadline = time.monotonic() + WAIT_SECONDS
        while event.status == "pending" and time.monotonic() < deadline:
            if not self._learn.apply(collection_id, [event.id]):
                time.sleep(0.02)
            with self._database.read() as reader:
                event = feedback.find(reader, collection_id, event.id) or event
        with self._database.read() as reader:
            return _receipt(reader, collection_id, event)


def _receipt(reader: Reader, collection_id: int, event: StoredEvent) -> Receipt:
    """The event with everything it changed so far."""
    changes = feedback.audit(reader, collection_id, event.id)
    return Receipt(event, changes, key_history.effect(reader, collection_id, event.id, CREDITS))
