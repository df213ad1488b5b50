"""The log of verdicts: each is stored once, and those that come at the same time together."""

import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

import structlog

from engram.context import tenancy
from engram.context.errors import ForbiddenError, IdempotencyConflictError, UnavailableError, is_out_of_reach
from engram.context.tenancy import ReaderNames
from engram.core.auth.access_keys import VOUCH
from engram.core.learning.logged_verdict import LoggedVerdict
from engram.services.encoders.encoder import Encoder
from engram.services.verdict.resolution import resolve_verdict, resolve_without_lookup
from engram.services.verdict.verdict import Verdict
from engram.storage.corpus import collections
from engram.storage.database import Database
from engram.storage.feedback_log import event_intake
from engram.storage.feedback_log.feedback_events import VerdictEvent
from engram.storage.question import episodes
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

    def store_now(self, verdict: Verdict, key: str, *, announced: bool = True) -> VerdictEvent:
        """Store the verdict under its key, in this thread. The same verdict again gets the first event.

        Args:
            announced: whether a worker is woken at once.

        Raises:
            NotFoundError: the query does not exist.
            GoneError: the collection was deleted, even if a new one has its name.
            InvalidRequestError: a named sentence does not exist, or is both supported and rejected.
            ConflictError: what it names has another text than the answer showed.
            ForbiddenError: it names another judge than its key does, or vouches without the right.
            IdempotencyConflictError: the key was used with another verdict.
            EmbeddingSpaceMismatchError: it brings expansions, and the collection's vectors are of another encoder.
            UnavailableError: Postgres is out of reach.
        """
        self._check(verdict)
        self.check_expansions(verdict)
        arrival = _Arrival(verdict, key, announced)
        [event] = self._append([arrival], [resolve_without_lookup(verdict)], check=True)
        if event is None:
            return self._look_up_and_store(arrival)
        self._announce([arrival], [event])
        return event

    def store_soon(self, verdict: Verdict, key: str, *, announced: bool = True) -> "Future[VerdictEvent]":
        """Store the verdict in the background, together with others that come meanwhile.

        Raises:
            NotFoundError: there is no such collection.
            ForbiddenError: as ``store_now``.
            EmbeddingSpaceMismatchError: it brings expansions, and the collection's vectors are of another encoder.
            UnavailableError: the log was closed.
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

    def _check(self, verdict: Verdict) -> None:
        """Check the right to judge under this name, the right to vouch, and the encoder if there are expansions."""
        verdict.scope.judge(verdict.judge)
        if verdict.claims_success and not verdict.scope.is_allowed(VOUCH):
            raise ForbiddenError(
                "To say that retrieval or generation succeeded takes a key with the scope `vouch`."
            )
        if verdict.expansions:
            self._encoder.check(verdict.scope.collection)

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
            except Exception as error:
                if not isinstance(error, UnavailableError):
                    log.exception("verdicts not stored")
                for arrival in arrivals:  # whatever failed, no caller may wait for ever
                    if not arrival.future.done():
                        arrival.future.set_exception(error)

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
        """Store those verdicts together that name sentences by ids alone, and each of the others by itself."""
        events: Sequence[VerdictEvent | None] = [None] * len(arrivals)
        try:
            events = self._append(arrivals, [resolve_without_lookup(one.verdict) for one in arrivals], check=True)
        except Exception as error:
            if is_out_of_reach(error):
                raise
            # One of them is at fault, so each is stored by itself below.
            log.exception("verdicts not stored together", verdicts=len(arrivals))
        for arrival, event in zip(arrivals, events, strict=True):
            if event is None:
                self._looking_up.submit(self._store_apart, arrival)
            else:
                arrival.future.set_result(event)
        self._announce(arrivals, events)

    def _store_apart(self, arrival: _Arrival) -> None:
        """Store the verdict, and give its event or error to the future."""
        try:
            arrival.future.set_result(self._look_up_and_store(arrival))
        except Exception as error:  # noqa: BLE001 - handed to whoever waits
            arrival.future.set_exception(error)

    def _look_up_and_store(self, arrival: _Arrival) -> VerdictEvent:
        """Find what the verdict names and its principal sees, and store it; or find what has its key already.

        Raises:
            As ``store_now``.
        """
        verdict, key, target = arrival.verdict, arrival.key, arrival.verdict.scope.collection
        principal = verdict.scope.principal
        with tenancy.restrict_to(principal.tenant, principal.readers):
            with self._database.read() as reader:
                first = event_intake.find_first(reader, target, verdict.author, key, verdict.query_id)
            if first is not None:
                return _check_repeat(verdict, first)
            self._check_seen(verdict)
            with self._database.read() as reader:
                logged = resolve_verdict(reader, verdict)
            [event] = self._append([arrival], [logged], check=False)
            if event is not None:
                self._announce([arrival], [event])
                return event
            with self._database.read() as reader:  # the same key, at the same time
                first = event_intake.find_by_key(reader, target.id, verdict.author, key)
            if first is None:
                raise collections.build_gone_error(target.name)
            return _check_repeat(verdict, first)

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

    def _append(
        self, arrivals: Sequence[_Arrival], logged: Sequence[LoggedVerdict | None], *, check: bool
    ) -> list[VerdictEvent | None]:
        """Append the arrivals that have a logged form, one statement for all that see the same.

        Returns:
            None for an arrival that has none, or that this cannot append.

        Args:
            check: see ``event_intake.append``.
        """
        stored: list[VerdictEvent | None] = [None] * len(arrivals)
        new: dict[tuple[str, ReaderNames | None], dict[int, VerdictEvent]] = {}
        for index, (arrival, verdict) in enumerate(zip(arrivals, logged, strict=True)):
            if verdict is not None:
                principal = arrival.verdict.scope.principal
                by_index = new.setdefault((principal.tenant, principal.readers), {})
                by_index[index] = _build_event(arrival, verdict)
        for sees, by_index in new.items():
            with tenancy.restrict_to(*sees), stage("accept"), self._database.write_once() as writer:
                appended = event_intake.append(writer, [*by_index.values()], check=check)
            for index, event in zip(by_index, appended, strict=True):
                stored[index] = event
        for event in stored:
            if event is not None:
                log.info("feedback accepted", event_id=event.id, query_id=str(event.query_id), judge=event.judge)
        return stored

    def _announce(self, arrivals: Sequence[_Arrival], events: Sequence[VerdictEvent | None]) -> None:
        """Wake a worker for the events of arrivals that were stored and are to be announced."""
        wakes = [
            (event.collection_id, event.id)
            for arrival, event in zip(arrivals, events, strict=True)
            if event is not None and arrival.announced
        ]
        if wakes:
            self._stream.wake(wakes)


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


def _check_repeat(verdict: Verdict, event: VerdictEvent) -> VerdictEvent:
    """Return the event logged under the key, if it is this verdict."""
    if event.body_hash != verdict.compute_hash():
        key = event.idempotency_key
        raise IdempotencyConflictError(f"Idempotency-Key {key!r} was used before with another verdict.")
    return event
