"""The log of verdicts: each is stored once, and those that come at the same time together."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial

import structlog

from engram.context import tenancy
from engram.context.errors import (
    ConflictError,
    ForbiddenError,
    IdempotencyConflictError,
    UnavailableError,
    is_out_of_reach,
)
from engram.core.auth.access_keys import VOUCH
from engram.core.filter.logged_verdict import LoggedVerdict
from engram.services.auth.scope import Scope
from engram.services.encoders.encoder import Encoder
from engram.services.verdict.resolution import resolve_verdict, resolve_without_lookup
from engram.services.verdict.verdict import Verdict
from engram.storage.corpus import collections
from engram.storage.corpus.collections import VERDICT, Collection
from engram.storage.database import Database
from engram.storage.feedback_log import event_intake, feedback_events
from engram.storage.feedback_log.feedback_events import VerdictEvent
from engram.storage.retrieval import episodes
from engram.storage.wake_stream import WakeStream
from engram.telemetry.stages import stage

log = structlog.get_logger(__name__)

MOST_PER_STATEMENT = 100
"""Verdicts that are stored by one statement at most."""
NAMES_TOGETHER = 5_000
"""Sentences that verdicts of one statement name: from this number on no further verdict joins."""
GATHER_SECONDS = 0.01
"""How long a batch waits for more verdicts, if several came at the same time. A single verdict never waits."""
LOOKING_UP = 4
"""Threads for verdicts whose names have to be looked up."""
WAKES = 1_000
"""Wake-ups that a retry of many events sends; the sweep finds the rest."""


@dataclass(frozen=True, slots=True)
class _Arrival:
    """A verdict and what becomes of it.

    Attributes:
        announced: whether a worker is woken for it.
        future: gets the stored event, or the error.
    """

    verdict: Verdict
    key: str
    announced: bool
    future: "Future[VerdictEvent]" = field(default_factory=Future)

    def settle(self, accept: Callable[[], VerdictEvent]) -> None:
        """Store the verdict by ``accept``, and give its event or error to the future."""
        try:
            self.future.set_result(accept())
        except Exception as error:  # noqa: BLE001 - handed to whoever waits
            self.future.set_exception(error)


class VerdictLog:
    """Stores verdicts under their Idempotency-Keys, and announces them.

    Most verdicts name sentences by their ids alone. One thread checks and stores all of these that wait by one
    statement. So many callers need neither many transactions nor many threads that take turns.
    """

    def __init__(self, database: Database, stream: WakeStream, encoder: Encoder) -> None:
        self._database = database
        self._encoder = encoder
        self._stream = stream
        self._waiting: deque[_Arrival] = deque()
        self._state = threading.Lock()
        self._running = False
        self._together = ThreadPoolExecutor(1, thread_name_prefix="verdict-log")
        self._looking_up = ThreadPoolExecutor(LOOKING_UP, thread_name_prefix="verdict-look-up")

    def accept(self, verdict: Verdict, key: str, *, announced: bool = True) -> VerdictEvent:
        """Store the verdict under its key, in this thread. The same verdict again gets the first event.

        Args:
            announced: whether a worker is woken at once.

        Raises:
            NotFoundError: the query does not exist.
            GoneError: the collection was deleted, even if a new one has its name.
            InvalidRequestError: a named sentence does not exist, or is both supported and rejected.
            ForbiddenError: it names another judge than its key does, or vouches without the right.
            IdempotencyConflictError: the key was used with another verdict.
            EmbeddingSpaceMismatchError: it brings expansions, and the collection's vectors are of another encoder.
            UnavailableError: Postgres is out of reach.
        """
        self._check(verdict)
        self.check_expansions(verdict)
        arrival = _Arrival(verdict, key, announced)
        known_event = _build_known_event(arrival)
        [event] = [None] if known_event is None else self._store([arrival], [known_event], checked=False)
        if event is None:
            return self._look_up(arrival)
        self._announce([event] if announced else [])
        return event

    def submit(self, verdict: Verdict, key: str, *, announced: bool = True) -> "Future[VerdictEvent]":
        """Accept a verdict in the background, together with others submitted meanwhile.

        Raises:
            NotFoundError: there is no such collection.
            ForbiddenError: as ``accept``.
            EmbeddingSpaceMismatchError: it brings expansions, and the collection's vectors are of another encoder.
            UnavailableError: the intake was closed.
        """
        _ = verdict.scope.collection  # raises here if there is none, before the verdict joins others
        self._check(verdict)
        arrival = _Arrival(verdict, key, announced)
        try:
            with self._state:
                self._waiting.append(arrival)
                if not self._running:
                    self._together.submit(self._run)
                    self._running = True
        except RuntimeError as error:
            raise UnavailableError("This process is ending.") from error
        return arrival.future

    def retry(self, scope: Scope, event_id: int) -> VerdictEvent:
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
        return event

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

    def _check(self, verdict: Verdict) -> None:
        """Check the right to judge under this name, the right to vouch, and the encoder if there are expansions."""
        verdict.scope.judge(verdict.judge)
        if verdict.vouches and not verdict.scope.is_allowed(VOUCH):
            raise ForbiddenError(
                "To say that retrieval or generation succeeded takes a key with the scope `vouch`."
            )
        if verdict.expansions:
            self._encoder.check(verdict.scope.collection)

    def check_expansions(self, verdict: Verdict) -> None:
        """Refuse expansions that have too many tokens. Do not call it on the event loop: it takes time.

        Raises:
            InvalidRequestError: they have too many tokens.
        """
        self._encoder.check_question("", [expansion.text for expansion in verdict.expansions])

    def close(self) -> None:
        """Accept no more verdicts, and give up look-ups that have not begun."""
        self._together.shutdown(wait=False)
        self._looking_up.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        """Store waiting verdicts, batch by batch, until none waits."""
        several = False
        while True:
            if several and len(self._waiting) < MOST_PER_STATEMENT:
                time.sleep(GATHER_SECONDS)
            with self._state:
                if not self._waiting:
                    self._running = False
                    return
                several = len(self._waiting) > 1
            arrivals = self._take_next()
            try:
                self._store_together(arrivals)
            except UnavailableError as error:
                _fail(arrivals, error)
            except Exception as error:  # whatever failed, no caller may wait for ever
                log.exception("verdicts not stored")
                _fail(arrivals, error)

    def _take_next(self) -> list[_Arrival]:
        """Take the next batch of waiting verdicts, in order; skip those whose callers have gone."""
        batch: list[_Arrival] = []
        name_count = 0
        while self._waiting and len(batch) < MOST_PER_STATEMENT and name_count < NAMES_TOGETHER:
            arrival = self._waiting.popleft()
            if arrival.future.set_running_or_notify_cancel():
                batch.append(arrival)
                name_count += len(arrival.verdict.named)
        return batch

    def _store_together(self, arrivals: Sequence[_Arrival]) -> None:
        """Store by one statement those verdicts that it can store.

        Each of the others is looked up and stored by itself in the background.
        """
        events_by_index = {
            index: event
            for index, arrival in enumerate(arrivals)
            if (event := _build_known_event(arrival)) is not None
        }
        stored: dict[int, VerdictEvent | None] = {}
        try:
            events = self._store(
                [arrivals[index] for index in events_by_index], [*events_by_index.values()], checked=False
            )
            stored = dict(zip(events_by_index, events, strict=True))
        except Exception as error:
            if is_out_of_reach(error):
                raise
            # One of them is at fault, so each is stored by itself below.
            log.exception("verdicts not stored together", verdicts=len(events_by_index))
        to_announce = []
        for index, arrival in enumerate(arrivals):
            stored_event = stored.get(index)
            if stored_event is None:
                self._looking_up.submit(arrival.settle, partial(self._look_up, arrival))
                continue
            arrival.future.set_result(stored_event)
            if arrival.announced:
                to_announce.append(stored_event)
        self._announce(to_announce)

    def _look_up(self, arrival: _Arrival) -> VerdictEvent:
        """Look up what a verdict names, as far as its principal sees it, and store it."""
        principal = arrival.verdict.scope.principal
        with tenancy.restrict_to(principal.tenant, principal.readers):
            return self._store_verdict(arrival)

    def _store_verdict(self, arrival: _Arrival) -> VerdictEvent:
        """Find what the verdict names and store it, or find what was stored under its key before.

        Raises:
            As ``accept``.
        """
        verdict, key, target = arrival.verdict, arrival.key, arrival.verdict.scope.collection
        with self._database.read() as reader:
            first = event_intake.find_first(reader, target, verdict.author, key, verdict.query_id)
        if first is not None:
            return _check_repeat(arrival, first)
        self._check_seen(verdict)
        with self._database.read() as reader:
            logged = resolve_verdict(reader, verdict)
        [event] = self._store([arrival], [_build_event(arrival, logged)], checked=True)
        if event is not None:
            self._announce([event] if arrival.announced else [])
            return event
        with self._database.read() as reader:  # the same key, at the same time
            first = event_intake.find_by_key(reader, target.id, verdict.author, key)
        if first is None:
            raise collections.build_gone_error(target.name)
        return _check_repeat(arrival, first)

    def _check_seen(self, verdict: Verdict) -> None:
        """Go on only if the principal sees all that the query found, or it is its own.

        Raises:
            NotFoundError: another asked, and found what the principal may not see: to it there is no such query.
        """
        query = verdict.scope.collection.id, verdict.query_id, verdict.scope.principal.name
        with self._database.read() as reader:
            if reader.reader_sets is None:
                return
            judged_count = episodes.count_found_for_others(reader, *query)
        with tenancy.allow_all_readers(), self._database.read() as reader:  # after the other is given back
            if episodes.count_found_for_others(reader, *query) > judged_count:
                raise episodes.build_missing_error(verdict.query_id)

    def _store(
        self, arrivals: Sequence[_Arrival], events: Sequence[VerdictEvent], *, checked: bool
    ) -> list[VerdictEvent | None]:
        """Store the events of arrivals, one statement for all that see the same.

        Returns:
            None for an event that this cannot store.

        Args:
            checked: see ``event_intake.accept``.
        """
        principals = [arrival.verdict.scope.principal for arrival in arrivals]
        sights = [(principal.tenant, principal.readers) for principal in principals]
        stored: dict[int, VerdictEvent | None] = {}
        for sees in dict.fromkeys(sights):
            own = [index for index, other in enumerate(sights) if other == sees]
            with tenancy.restrict_to(*sees), stage("accept"), self._database.write_once() as writer:
                accepted = event_intake.accept(writer, [events[index] for index in own], checked=checked)
                stored |= zip(own, accepted, strict=True)
        in_order = [stored[index] for index in range(len(events))]
        for event in in_order:
            if event is not None:
                log.info("feedback accepted", event_id=event.id, query_id=str(event.query_id), judge=event.judge)
        return in_order

    def _announce(self, events: Sequence[VerdictEvent]) -> None:
        """Wake a worker for these events."""
        if events:
            self._stream.wake([(event.collection_id, event.id) for event in events])


def _build_known_event(arrival: _Arrival) -> VerdictEvent | None:
    """Build the event of a verdict that names sentences by id alone; None for any other verdict.

    Whether the sentences exist is still to be checked.
    """
    logged = resolve_without_lookup(arrival.verdict)
    return None if logged is None else _build_event(arrival, logged)


def _build_event(arrival: _Arrival, logged: LoggedVerdict) -> VerdictEvent:
    """Build the event to store."""
    verdict, scope = arrival.verdict, arrival.verdict.scope
    judge, trusted = scope.judge(verdict.judge)
    return VerdictEvent(
        collection_id=scope.collection.id,
        query_id=verdict.query_id,
        idempotency_key=arrival.key,
        body_hash=verdict.compute_hash(),
        judge=judge,
        principal=verdict.author,
        trusted=trusted,
        logged=logged,
    )


def _check_repeat(arrival: _Arrival, event: VerdictEvent) -> VerdictEvent:
    """Return the event logged under the key, if it is this verdict."""
    if event.body_hash != arrival.verdict.compute_hash():
        raise IdempotencyConflictError(f"Idempotency-Key {arrival.key!r} was used before with another verdict.")
    return event


def _fail(arrivals: Sequence[_Arrival], error: Exception) -> None:
    """Give the error to all who still wait for these verdicts."""
    for arrival in arrivals:
        if not arrival.future.done():
            arrival.future.set_exception(error)
