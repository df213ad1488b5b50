"""The learned state of a past moment, in a collection of its own beside the live one.

All is one transaction on one snapshot, which locks no row of the live collection: learning and queries go on, the
copy is seen whole or not at all, and whatever ends it before its end leaves nothing.
"""

import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from uuid import UUID

import structlog

from engram.context.errors import ConflictError, InvalidRequestError, NameTakenError, UnavailableError
from engram.core.text import name_pattern
from engram.services.auth.scope import Scope
from engram.services.jobs.idempotent_jobs import JobStart, open_job
from engram.services.jobs.work import JobKind, Work
from engram.services.revocation.derived_state import DerivedState, Report
from engram.storage.corpus import collections
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database, Reader, Writer
from engram.storage.jobs.jobs import Job
from engram.wings.history.services.past_copy import PastCopy, PastCopyBuilder
from engram.wings.history.services.restored_verdicts import VerdictRestorer
from engram.wings.history.storage import collection_copies

log = structlog.get_logger(__name__)

REPLAY = JobKind("replay", "copies")
REPORT_SECONDS = 0.5


class PastService:
    """Accepts and does jobs that make collections that are as another was."""

    def __init__(self, database: Database, restore: VerdictRestorer, derived: Sequence[DerivedState]) -> None:
        self._database = database
        self._restore = restore
        self._derived = derived

    def request(self, scope: Scope, until: datetime, into: str | None = None, key: str | None = None) -> UUID:
        """Queue a job that makes a collection of what another had learned at ``until``.

        It serves without memory. The job's result is a ``PastCopy``.

        Args:
            into: its name; by default the collection's and the moment.
            key: the Idempotency-Key, if there is one.

        Raises:
            NotFoundError: the other was deleted meanwhile.
            InvalidRequestError: ``into`` is no name, or the moment is yet to come or has no offset.
            ConflictError: there is a collection of that name.
            IdempotencyConflictError: the key was used before with another request.
        """
        if until.tzinfo is None:
            raise InvalidRequestError("The moment needs its offset from UTC, as in 2026-11-21T12:00:00Z.")
        name = into or f"{scope.collection.name}-at-{until.astimezone(UTC):%Y%m%dT%H%M%SZ}"
        if not re.fullmatch(name_pattern.COLLECTION, name):
            raise InvalidRequestError(f"{name!r} is no name for a collection.")

        def begin(writer: Writer, collection_id: int) -> JobStart:
            _check(writer, until, collection_id, name)
            return JobStart({})

        return open_job(self._database, scope, REPLAY, {"until": until.isoformat(), "into": name}, key, begin)

    def run(self, work: Work) -> None:
        """Make the collection, unless a try before did and died before it said so."""
        job = work.job
        until, name = datetime.fromisoformat(job.payload["until"]), job.payload["into"]
        with self._database.read() as reader:
            source = collections.load_by_id(reader, job.collection_id)
            result = collection_copies.find_report(reader, source.id, name, job.id)
        if result is None:
            try:
                result = self.make(source, until, name, self._report(work), work.should_stop, job.id).as_json()
            except UnavailableError:
                if work.should_stop():
                    return
                raise
        with self._database.write() as writer:
            work.finish(writer, result)

    def let_go(self, writer: Writer, job: Job) -> None:
        """Remove a collection that was not copied whole."""

    def make(
        self,
        original: Collection,
        until: datetime,
        into: str,
        report: Report = lambda *_: None,
        should_stop: Callable[[], bool] = lambda: False,
        job: UUID | None = None,
    ) -> PastCopy:
        """Make the collection ``into`` of what ``original`` had learned at ``until``.

        Args:
            should_stop: polled; once true, nothing is made.
            job: by which it is known again.

        Raises:
            NotFoundError: the other was deleted meanwhile.
            InvalidRequestError: the moment is yet to come.
            ConflictError: there is a collection of that name, or another process makes one.
            UnavailableError: it was told to stop, or Postgres is out of reach.
            EmbeddingSpaceMismatchError: an expansion has to be embedded anew, by an encoder that is not here.
        """

        def on_progress(stage: str, done: int, total: int) -> None:
            if should_stop():
                raise UnavailableError("Told to stop before the end.")
            report(stage, done, total)

        with self._database.hold_lock(f"replay:{original.tenant}/{into}") as is_locked:
            if not is_locked:
                raise ConflictError(f"Another process makes collection {into!r}.")
            while True:
                prepared = self._restore.prepare(original.id, until)  # with no transaction open
                with self._database.write_long(should_stop) as writer:
                    source = collections.load_by_id(writer, original.id)
                    _check(writer, until, source.id, into)
                    if prepared.fit(writer, source, until):
                        copy = collection_copies.open_copy(writer, source.id, into, until, job)
                        past = PastCopyBuilder(writer, copy, self._derived, on_progress).make(
                            original.name, into, self._restore, prepared
                        )
                        collection_copies.describe(writer, copy, past.as_json())
                        break
        log.info("past state made", collection=into, of=original.name, until=until.isoformat(), events=past.events)
        return past

    def _report(self, work: Work) -> Report:
        """Has the job say what is being done, beside the transaction that does it, which nobody sees yet."""
        reported_at, reported_stage = 0.0, ""

        def tell(stage: str, done: int, total: int) -> None:
            nonlocal reported_at, reported_stage
            now = time.monotonic()
            if stage == reported_stage and done < total and now - reported_at < REPORT_SECONDS:
                return
            with self._database.write_once() as writer:
                work.report(writer, received=total, updated=done, stage=stage, keep_result=False)
            reported_at, reported_stage = now, stage

        return tell


def _check(reader: Reader, until: datetime, source: int, name: str) -> None:
    """Raise what stands against making this collection."""
    if until > collection_copies.read_clock(reader):
        raise InvalidRequestError(f"{until.isoformat()} is yet to come.")
    if collection_copies.is_taken(reader, source, name):
        raise NameTakenError(f"There is a collection {name!r} already.")
