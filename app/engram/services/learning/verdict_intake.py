"""Taking verdicts into the log: each once, and those that come at the same time together."""

import hashlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial

import structlog

from engram.context import tenancy
from engram.context.errors import ForbiddenError, IdempotencyConflictError, UnavailableError, is_out_of_reach
from engram.core.auth.access_keys import VOUCH
from engram.core.filter.logged_verdict import Expansion, LoggedVerdict
from engram.services.encoders.encoder import Encoder
from engram.services.learning.incoming_verdict import NamedSentence, Verdict
from engram.services.learning.verdict_resolution import resolve_verdict, resolve_without_lookup
from engram.storage.corpus import collections
from engram.storage.database import Database, Reader
from engram.storage.feedback_log import event_intake
from engram.storage.feedback_log.event_intake import NewVerdictEvent
from engram.storage.feedback_log.feedback_events import StoredVerdictEvent
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

HASHED_FIELDS = [
    attribute.name
    for attribute in fields(Verdict)
    if attribute.name not in ("scope", "rounds", "rating", "cited", "reason")
]
"""Fields whose values make the hash of a verdict under its key.

A new field of ``Verdict`` changes all hashes: leave it out here, and add it in ``hash_verdict`` only where it is
set. A session fills in ``rounds`` itself.
"""


@dataclass(frozen=True, slots=True)
class _PendingVerdict:
    """A verdict that is not stored yet.

    Attributes:
        announced: whether a worker is woken for it.
        future: gets the stored event, or the error.
    """

    verdict: Verdict
    key: str
    announced: bool
    future: "Future[StoredVerdictEvent]" = field(default_factory=Future)

    def settle(self, accept: Callable[[], StoredVerdictEvent]) -> None:
        """Store the verdict by ``accept``, and give its event or error to the future."""
        try:
            self.future.set_result(accept())
        except Exception as error:  # noqa: BLE001 - handed to whoever waits
            self.future.set_exception(error)


def hash_verdict(verdict: Verdict) -> bytes:
    """Return the hash that recognises a repeated verdict under its key."""
    content = {name: getattr(verdict, name) for name in HASHED_FIELDS}
    if verdict.rating is not None:
        content["rating"] = {"rating": verdict.rating, "cited": verdict.cited, "reason": verdict.reason}
    return hashlib.sha256(json.dumps(content, default=_convert_value).encode()).digest()


class Intake:
    """Stores verdicts under their Idempotency-Keys, and announces them.

    Most verdicts name sentences by their ids alone. One thread checks and stores all of these that wait by one
    statement. So many callers need neither many transactions nor many threads that take turns.
    """

    def __init__(self, database: Database, stream: WakeStream, encoder: Encoder) -> None:
        self._database = database
        self._encoder = encoder
        self._stream = stream
        self._waiting: deque[_PendingVerdict] = deque()
        self._state = threading.Lock()
        self._running = False
        self._together = ThreadPoolExecutor(1, thread_name_prefix="intake")
        self._looking_up = ThreadPoolExecutor(LOOKING_UP, thread_name_prefix="intake-look-up")

    def accept(self, verdict: Verdict, key: str, *, announced: bool = True) -> StoredVerdictEvent:
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
        arriving = _PendingVerdict(verdict, key, announced)
        known_event = _build_known_event(arriving)
        [event] = [None] if known_event is None else self._store([known_event])
        if event is None:
            return self._look_up(arriving)
        self._announce([event] if announced else [])
        return event

    def submit(self, verdict: Verdict, key: str, *, announced: bool = True) -> "Future[StoredVerdictEvent]":
        """Accept a verdict in the background, together with others submitted meanwhile.

        Raises:
            NotFoundError: there is no such collection.
            ForbiddenError: as ``accept``.
            EmbeddingSpaceMismatchError: it brings expansions, and the collection's vectors are of another encoder.
            UnavailableError: the intake was closed.
        """
        _ = verdict.scope.collection  # raises here if there is none, before the verdict joins others
        self._check(verdict)
        arriving = _PendingVerdict(verdict, key, announced)
        try:
            with self._state:
                self._waiting.append(arriving)
                if not self._running:
                    self._together.submit(self._run)
                    self._running = True
        except RuntimeError as error:
            raise UnavailableError("This process is ending.") from error
        return arriving.future

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

    def _take_next(self) -> list[_PendingVerdict]:
        """Take the next batch of waiting verdicts, in order; skip those whose callers have gone."""
        batch: list[_PendingVerdict] = []
        name_count = 0
        while self._waiting and len(batch) < MOST_PER_STATEMENT and name_count < NAMES_TOGETHER:
            arriving = self._waiting.popleft()
            if arriving.future.set_running_or_notify_cancel():
                batch.append(arriving)
                name_count += len(arriving.verdict.named)
        return batch

    def _store_together(self, arrivals: Sequence[_PendingVerdict]) -> None:
        """Store by one statement those verdicts that it can store.

        Each of the others is looked up and stored by itself in the background.
        """
        events_by_index = {
            index: event
            for index, arriving in enumerate(arrivals)
            if (event := _build_known_event(arriving)) is not None
        }
        stored: dict[int, StoredVerdictEvent | None] = {}
        try:
            stored = dict(zip(events_by_index, self._store(list(events_by_index.values())), strict=True))
        except Exception as error:
            if is_out_of_reach(error):
                raise
            # One of them is at fault, so each is stored by itself below.
            log.exception("verdicts not stored together", verdicts=len(events_by_index))
        to_announce = []
        for index, arriving in enumerate(arrivals):
            stored_event = stored.get(index)
            if stored_event is None:
                self._looking_up.submit(arriving.settle, partial(self._look_up, arriving))
                continue
            arriving.future.set_result(stored_event)
            if arriving.announced:
                to_announce.append(stored_event)
        self._announce(to_announce)

    def _look_up(self, arriving: _PendingVerdict) -> StoredVerdictEvent:
        """Look up what a verdict names, as far as its principal sees it, and store it."""
        principal = arriving.verdict.scope.principal
        with tenancy.restrict_to(principal.tenant, principal.readers):
            return self._store_verdict(arriving)

    def _store_verdict(self, arriving: _PendingVerdict) -> StoredVerdictEvent:
        """Find what the verdict names and store it, or find what was stored under its key before.

        Raises:
            As ``accept``.
        """
        verdict, key, target = arriving.verdict, arriving.key, arriving.verdict.scope.collection
        principal = verdict.scope.principal.name
        with self._database.read() as reader:
            first = event_intake.find_first(reader, target, principal, key, verdict.query_id)
            if first is not None:
                return _check_repeat(arriving, first)
            self._check_seen(reader, verdict)
            logged = resolve_verdict(reader, verdict)
        [event] = self._store([replace(_build_event(arriving, logged), sees_query=True)])
        if event is not None:
            self._announce([event] if arriving.announced else [])
            return event
        with self._database.read() as reader:  # the same key, at the same time
            first = event_intake.find_by_key(reader, target.id, principal, key)
        if first is None:
            raise collections.build_gone_error(target.name)
        return _check_repeat(arriving, first)

    def _check_seen(self, reader: Reader, verdict: Verdict) -> None:
        """Go on only if the principal sees all that the query found, or it is its own.

        Raises:
            NotFoundError: another asked, and found what the principal may not see: to it there is no such query.
        """
        if reader.reader_sets is None:
            return
        query = verdict.scope.collection.id, verdict.query_id, verdict.scope.principal.name
        seen = episodes.count_found_for_others(reader, *query)
        with tenancy.allow_all_readers(), self._database.read() as whole:
            if episodes.count_found_for_others(whole, *query) > seen:
                raise episodes.build_missing_error(verdict.query_id)

    def _store(self, events: Sequence[NewVerdictEvent]) -> list[StoredVerdictEvent | None]:
        """Store events, one statement for all that see the same; None for an event that this cannot store.

        See ``event_intake.accept``.
        """
        if not events:
            return []
        stored: dict[int, StoredVerdictEvent | None] = {}
        for sees in dict.fromkeys((event.tenant, event.readers) for event in events):
            own = [index for index, event in enumerate(events) if (event.tenant, event.readers) == sees]
            with tenancy.restrict_to(*sees), stage("accept"), self._database.write_once() as writer:
                stored |= zip(own, event_intake.accept(writer, [events[index] for index in own]), strict=True)
        in_order = [stored[index] for index in range(len(events))]
        for event in in_order:
            if event is not None:
                log.info("feedback accepted", event_id=event.id, query_id=str(event.query_id), judge=event.judge)
        return in_order

    def _announce(self, events: Sequence[StoredVerdictEvent]) -> None:
        """Wake a worker for these events."""
        if events:
            self._stream.wake([(event.collection_id, event.id) for event in events])


def _build_known_event(arriving: _PendingVerdict) -> NewVerdictEvent | None:
    """Build the event of a verdict that names sentences by id alone; None for any other verdict.

    Whether the sentences exist is still to be checked.
    """
    logged = resolve_without_lookup(arriving.verdict)
    return None if logged is None else _build_event(arriving, logged, sorted({*logged.supports, *logged.rejects}))


def _build_event(
    arriving: _PendingVerdict, logged: LoggedVerdict, sentences: Sequence[int] = ()
) -> NewVerdictEvent:
    """Build the event to store; ``sentences``: ids that must exist for it to be stored."""
    verdict, scope = arriving.verdict, arriving.verdict.scope
    judge, trusted = scope.judge(verdict.judge)
    return NewVerdictEvent(
        scope.collection.id,
        verdict.query_id,
        arriving.key,
        hash_verdict(arriving.verdict),
        judge,
        logged,
        sentences,
        principal=scope.principal.name,
        tenant=scope.principal.tenant,
        trusted=trusted,
        readers=scope.principal.readers,
    )


def _convert_value(value: object) -> object:
    """Convert values that JSON lacks."""
    return asdict(value) if isinstance(value, NamedSentence | Expansion) else str(value)


def _check_repeat(arriving: _PendingVerdict, event: StoredVerdictEvent) -> StoredVerdictEvent:
    """Return the event logged under the key, if it is this verdict."""
    if event.body_hash != hash_verdict(arriving.verdict):
        raise IdempotencyConflictError(f"Idempotency-Key {arriving.key!r} was used before with another verdict.")
    return event


def _fail(arrivals: Sequence[_PendingVerdict], error: Exception) -> None:
    """Give the error to all who still wait for these verdicts."""
    for arriving in arrivals:
        if not arriving.future.done():
            arriving.future.set_exception(error)
