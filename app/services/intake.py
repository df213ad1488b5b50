"""Taking verdicts into the log: each once, and those that come at the same time together."""

import hashlib
import json
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial

import structlog

from app.errors import IdempotencyConflictError, NotFoundError, UnavailableError
from app.services.verdict import Verdict, look_up, named_by_id, resolved
from app.storage import collections, episodes, feedback
from app.storage.database import Database
from app.storage.feedback import NewEvent, StoredEvent
from app.storage.stream import WakeStream

log = structlog.get_logger(__name__)

TOGETHER = 100
"""Verdicts that are stored by one statement at most."""
GATHER_SECONDS = 0.01
"""How long more are waited for where several came at the same time: no single caller ever waits."""
LOOKING_UP = 4
"""Threads for verdicts that name what has to be looked up."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """An event in the log, and whose it is."""

    collection_id: int
    event: StoredEvent


@dataclass(frozen=True, slots=True)
class _Arriving:
    verdict: Verdict
    key: str
    body_hash: bytes

    def checked(self, accepted: Accepted) -> Accepted:
        """What is in the log under the key, if it is this verdict."""
        if accepted.event.body_hash != self.body_hash:
            raise IdempotencyConflictError(f"Idempotency-Key {self.key!r} was used before with another verdict.")
        return accepted


@dataclass(frozen=True, slots=True)
class _Waiting:
    verdict: Verdict
    key: str
    future: "Future[Accepted]"

    def settle(self, accept: Callable[[], Accepted]) -> None:
        """Let whoever waits have what comes of it."""
        try:
            self.future.set_result(accept())
        except Exception as error:  # noqa: BLE001 - handed to whoever waits
            self.future.set_exception(error)


class Intake:
    """Stores verdicts under their Idempotency-Keys, and announces them.

    A verdict that names sentences by their ids alone, as most do, is checked and stored by one statement together
    with all others of its kind that wait, in a thread of its own: many callers then need neither many transactions
    nor many threads that take turns.
    """

    def __init__(self, database: Database, stream: WakeStream) -> None:
        self._database = database
        self._stream = stream
        self._waiting: deque[_Waiting] = deque()
        self._many = False
        self._together = ThreadPoolExecutor(1, thread_name_prefix="intake")
        self._looking_up = ThreadPoolExecutor(LOOKING_UP, thread_name_prefix="intake-look-up")

    def accept(self, verdict: Verdict, key: str, *, announced: bool = True) -> Accepted:
        """Store the verdict under its key, here; the same verdict again gets the event of then.

        Args:
            announced: whether a worker is told at once.

        Raises:
            NotFoundError: the query or the collection does not exist.
            InvalidRequestError: a named sentence does not exist, or is both supported and rejected.
            IdempotencyConflictError: the key was used with another verdict.
            UnavailableError: Postgres is out of reach.
        """
        arriving = _arriving(verdict, key)
        known = _known(arriving)
        [accepted] = [None] if known is None else self._store([known], announced=announced)
        return arriving.checked(accepted) if accepted else self._look_up(arriving, announced=announced)

    def submit(self, verdict: Verdict, key: str) -> "Future[Accepted]":
        """As ``accept``, in the background, together with what else is submitted meanwhile."""
        waiting = _Waiting(verdict, key, Future())
        self._waiting.append(waiting)
        self._together.submit(self._take)
        return waiting.future

    def close(self) -> None:
        """Accept nothing more; what was submitted and nobody waits for any more may be left."""
        self._together.shutdown(wait=False, cancel_futures=True)
        self._looking_up.shutdown(wait=False, cancel_futures=True)

    def _take(self) -> None:
        """Store what waits, if an earlier call did not, and leave to others what takes more than that."""
        if self._many and self._waiting:
            time.sleep(GATHER_SECONDS)
        self._many = len(self._waiting) > 1
        quick: list[tuple[_Waiting, _Arriving, NewEvent]] = []
        while self._waiting and len(quick) < TOGETHER:
            waiting = self._waiting.popleft()
            if not waiting.future.set_running_or_notify_cancel():
                continue  # whoever asked has gone
            arriving = _arriving(waiting.verdict, waiting.key)
            known = _known(arriving)
            if known is None:
                self._looking_up.submit(waiting.settle, partial(self._look_up, arriving, announced=True))
            else:
                quick.append((waiting, arriving, known))
        found: list[Accepted | None] = [None] * len(quick)
        try:
            if quick:
                found = self._store([known for _, _, known in quick], announced=True)
        except UnavailableError as error:
            for waiting, _, _ in quick:
                waiting.future.set_exception(error)
            return
        except Exception:  # one of them is at fault, which is not to stop the others: each tries by itself
            log.exception("verdicts not stored together", verdicts=len(quick))
        for (waiting, arriving, _), accepted in zip(quick, found, strict=True):
            if accepted is None:
                self._looking_up.submit(waiting.settle, partial(self._look_up, arriving, announced=True))
            else:
                waiting.settle(partial(arriving.checked, accepted))

    def _look_up(self, arriving: _Arriving, *, announced: bool) -> Accepted:
        """Find what the verdict names and store it, or find what was stored under its key before.

        Raises:
            NotFoundError, InvalidRequestError, IdempotencyConflictError, UnavailableError: as ``accept``.
        """
        verdict, key = arriving.verdict, arriving.key
        with self._database.read() as reader:
            met = feedback.arrival(reader, verdict.collection, key, verdict.query_id)
            if met is None:
                raise collections.missing(verdict.collection)
            if met.first is not None:
                return arriving.checked(Accepted(met.collection_id, met.first))
            if not met.has_episode:
                raise episodes.missing(verdict.query_id)
            found = look_up(reader, met.collection_id, verdict)
        [accepted] = self._store([_new(arriving, resolved(verdict, found))], announced=announced)
        if accepted is not None:
            return accepted
        with self._database.read() as reader:  # the same key, at the same time
            first = feedback.by_key(reader, met.collection_id, key)
        if first is None:
            raise NotFoundError(f"Collection {verdict.collection!r} was deleted meanwhile.")
        return arriving.checked(Accepted(met.collection_id, first))

    def _store(self, events: Sequence[NewEvent], *, announced: bool) -> list[Accepted | None]:
        """Store events, those that can be: see ``storage.feedback.accept``."""
        with self._database.write_once() as writer:
            stored = feedback.accept(writer, events)
        accepted = [None if one is None else Accepted(*one) for one in stored]
        for one in accepted:
            if one is not None:
                log.info(
                    "feedback accepted",
                    event_id=one.event.id,
                    query_id=str(one.event.query_id),
                    judge=one.event.judge,
                )
        if announced:
            self._stream.wake([(one.collection_id, one.event.id) for one in accepted if one is not None])
        return accepted


def _arriving(verdict: Verdict, key: str) -> _Arriving:
    body = json.dumps(asdict(verdict), sort_keys=True, default=str)
    return _Arriving(verdict, key, hashlib.sha256(body.encode()).digest())


def _known(arriving: _Arriving) -> NewEvent | None:
    """The event of a verdict that names sentences by id alone, which are still to be seen to exist."""
    found = named_by_id(arriving.verdict)
    return None if found is None else _new(arriving, resolved(arriving.verdict, found), sorted(found.sentences))


def _new(arriving: _Arriving, verdict: dict[str, object], sentences: Sequence[int] = ()) -> NewEvent:
    given = arriving.verdict
    return NewEvent(
        given.collection, given.query_id, arriving.key, arriving.body_hash, given.judge, verdict, sentences
    )
