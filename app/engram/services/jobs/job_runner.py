"""Doing jobs: claimed one by one in each lane of a collection, kept while they last, tried again, and closed.

A claim is a lease: a beat puts its end off while the job runs, and whatever ends the worker lets it run out. It
holds neither a connection nor a transaction, so it also ends with a worker that hangs or a machine that is lost,
and works through a pooler that hands out connections by the transaction. A worker that was overtaken finds out
with its next transaction, which is undone.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from types import TracebackType
from typing import Self
from uuid import UUID, uuid4

import structlog

from engram.context import deadline, tenancy
from engram.context.errors import (
    EmbeddingSpaceMismatchError,
    EmbeddingUnavailableError,
    LlmError,
    NameTakenError,
    UnavailableError,
    describe_publicly,
    is_out_of_reach,
)
from engram.services.jobs.work import ClaimLostError, JobHandler, JobKind, Work
from engram.storage.database import Database
from engram.storage.jobs import job_claims
from engram.storage.jobs.job_claims import ANY_TURN, Turns
from engram.storage.jobs.jobs import Job
from engram.telemetry import stages

log = structlog.get_logger(__name__)

MAX_ATTEMPTS = 5
RETRY_SECONDS = 1.0
WAIT_SECONDS = 5.0
"""Wait before a job is tried again that needs another's server or the encoder of another worker."""
BEATS = 5
"""Beats within a lease; it runs out if so many in a row are missed."""
BEAT_SECONDS = 2.0
"""Longest time between two beats. A beat also learns whether the job was cancelled."""
TURN_SECONDS = 1.0
"""Shortest turn of a job while others wait in its lane; it ends with the batch in hand."""
REMEMBERED_TURNS = 1_000
"""Tenants by lane whose last turn a worker remembers."""
TENANTS_AT_ONCE = 3
"""Jobs of one lane that a worker does at once, each of another tenant."""


class Runner:
    """Does the jobs of every kind that it has a handler for."""

    def __init__(
        self,
        database: Database,
        handlers: Mapping[JobKind, JobHandler],
        *,
        lease_seconds: float,
        retry_seconds: float = RETRY_SECONDS,
        afterwards: Callable[[Callable[[], bool], int | None], object] | None = None,
    ) -> None:
        """Keep the handlers.

        Args:
            retry_seconds: wait before a job's second try; it doubles before each further try.
            afterwards: called at the end of ``run_ready`` with its ``should_stop`` and ``collection_id``.
        """
        self._database = database
        self._afterwards = afterwards
        self._handlers = {kind.name: handler for kind, handler in handlers.items()}
        self._lease_seconds = lease_seconds
        self._retry_seconds = retry_seconds
        self.lanes = tuple(dict.fromkeys(kind.lane for kind in handlers))

    def run_ready(
        self, should_stop: Callable[[], bool] = lambda: False, *, collection_id: int | None = None
    ) -> int:
        """Do every job that is ready, in this thread; return how many ended. Then call ``afterwards``.

        Args:
            collection_id: do jobs of this collection only.

        Raises:
            UnavailableError: a server is out of reach; the job in hand is ready again once its lease has run out.
        """
        claimant, ended = uuid4(), 0
        while job := self.claim(claimant, self.lanes, collection_id):
            ended += self.carry_out(job, should_stop)
            if should_stop():
                return ended
        if self._afterwards is not None:
            self._afterwards(should_stop, collection_id)
        return ended

    def claim(
        self, claimant: UUID, lanes: Sequence[str], collection_id: int | None = None, turns: Turns = ANY_TURN
    ) -> Job | None:
        """Claim the next job of these lanes for ``claimant``; None if no job is ready.

        Args:
            turns: jobs that the claimant has in hand, and tenants that it served before.
        """
        with self._database.write_once() as writer:
            return job_claims.claim(writer, claimant, lanes, self._lease_seconds, collection_id, turns)

    def carry_out(self, job: Job, should_stop: Callable[[], bool], *, takes_turns: bool = False) -> bool:
        """Do a claimed job to its end, or until told to stop; return whether it ended, also by failing.

        Args:
            takes_turns: whether it also stops, to go on later, while jobs of other collections wait in its lane.

        Raises:
            UnavailableError: a server is out of reach; the job stays in hand, and its claimant may claim it again.
        """
        handler = self._handlers[job.kind]
        work = Work(job, should_stop, self._build_turn_check(job) if takes_turns else lambda: False)
        try:
            if job.attempts >= MAX_ATTEMPTS:  # the last of its workers was lost
                return self._end(work, handler, "failed", job.error)
            return self._try(work, handler)
        except ClaimLostError:
            log.warning("job taken over or gone", job_id=str(job.id), collection=job.collection, kind=job.kind)
            return False

    def _try(self, work: Work, handler: JobHandler) -> bool:
        job = work.job
        try:
            if not work.cancelled:
                with (
                    self._heartbeat(work),
                    stages.measure_job(job.kind),
                    deadline.abandon_when(lambda: work.is_unwanted),
                ):
                    handler.run(work)
        except ClaimLostError:
            raise
        except deadline.WorkStoppedError as error:
            if work.lost:
                raise ClaimLostError from error
        # The endpoint may come back, and another worker may run the collection's encoder.
        except (LlmError, EmbeddingSpaceMismatchError, EmbeddingUnavailableError) as error:
            log.warning("job waits for what it needs", job_id=str(job.id), error=error.detail)
            self._put_back(work, after_seconds=WAIT_SECONDS, error=error.public_detail)
            return False
        except Exception as error:
            if is_out_of_reach(error):
                raise
            return self._record_failure(work, handler, error)
        if work.finished:
            stages.count_ended_job(job.kind, "succeeded")
            log.info("job finished", job_id=str(job.id), collection=job.collection, kind=job.kind)
            return True
        if work.cancelled:
            return self._end(work, handler, "cancelled")
        if not work.should_stop():
            return self._record_failure(work, handler, RuntimeError("its handler returned before the end"))
        if work.yielded:
            log.info("job gives others their turn", job_id=str(job.id), collection=job.collection, kind=job.kind)
        self._put_back(work)
        return False

    def _build_turn_check(self, job: Job) -> Callable[[], bool]:
        """Build a function that tells whether the job's turn, which begins now, is over and others wait."""
        asks_again = time.monotonic() + TURN_SECONDS

        def is_over() -> bool:
            nonlocal asks_again
            if time.monotonic() < asks_again:
                return False
            asks_again = time.monotonic() + TURN_SECONDS
            with self._database.read() as reader:
                return job_claims.has_waiting_others(reader, job)

        return is_over

    def _record_failure(self, work: Work, handler: JobHandler, error: Exception) -> bool:
        """Count a failed try; return whether it was the last."""
        if isinstance(error, NameTakenError):
            return self._end(work, handler, "failed", error.public_detail)
        job, reason = work.job, describe_publicly(error)
        with self._database.read() as reader:
            before = job_claims.attempts(reader, job)
        if before is None:
            raise ClaimLostError from error
        stages.count_ended_job(job.kind, "tried")
        log.error("job failed a try", job_id=str(job.id), collection=job.collection, exc_info=error)
        if before + 1 >= MAX_ATTEMPTS:
            return self._end(work, handler, "failed", reason)
        self._put_back(work, after_seconds=self._retry_seconds * 2**before, error=reason, tried=True)
        return False

    def _put_back(
        self, work: Work, *, after_seconds: float = 0.0, error: str | None = None, tried: bool = False
    ) -> None:
        with self._database.write_once() as writer:
            job_claims.put_back(writer, work.job, after_seconds=after_seconds, error=error, tried=tried)

    def _end(self, work: Work, handler: JobHandler, status: str, error: str | None = None) -> bool:
        """Close a job as failed or cancelled. What its transactions did so far stays."""
        job = work.job
        with self._database.write() as writer:
            work.close(writer, status, error=error)
            handler.let_go(writer, job)
        stages.count_ended_job(job.kind, status)
        log.warning("job ended", status=status, job_id=str(job.id), collection=job.collection, kind=job.kind)
        return True

    @contextmanager
    def _heartbeat(self, work: Work) -> Iterator[None]:
        """Renew the lease regularly while the block runs."""
        over = threading.Event()

        def beat() -> None:
            while not over.wait(min(BEAT_SECONDS, self._lease_seconds / BEATS)):
                try:
                    with tenancy.allow_all_tenants(), self._database.write_once() as writer:
                        work.hear(job_claims.keep(writer, work.job, self._lease_seconds))
                except UnavailableError as error:  # the lease lasts for some more beats
                    log.warning("job's lease not put off", job_id=str(work.job.id), error=error.detail)
                except ClaimLostError:  # the handler stops by itself, or has just finished
                    return

        thread = threading.Thread(target=beat, name="beat", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


class JobThreads:
    """A worker's threads for jobs. Use it as a context manager, which waits for what is in hand.

    In each lane it does a few jobs at once, each of another tenant, so no tenant waits for another's long job. A
    job that has had its turn goes back to the queue after its batch if jobs of other collections wait in its lane.
    One statement asks for jobs of all lanes that have room; a thread that has one goes on with the next.
    """

    def __init__(self, runner: Runner, should_stop: Callable[[], bool]) -> None:
        self._runner = runner
        self._should_stop = should_stop
        self._claimant = uuid4()
        self._lock = threading.Lock()
        self._in_hand: list[tuple[str, str, int]] = []
        self._served: dict[tuple[str, str], int] = {}
        self._threads: list[Future[None]] = []
        self._pool = ThreadPoolExecutor(len(runner.lanes) * TENANTS_AT_ONCE, thread_name_prefix="job")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def step(self) -> bool:
        """Begin the next ready job of a lane with room, in a thread; return whether there was one.

        Raises:
            UnavailableError: a server is out of reach, for this call or for an earlier job's thread.
        """
        for thread in [thread for thread in self._threads if thread.done()]:
            self._threads.remove(thread)
            thread.result()
        job = self._claim_next()
        if job is None:
            return False
        self._threads.append(self._pool.submit(tenancy.carry(self._work_through), job))
        return True

    def _claim_next(self) -> Job | None:
        """Claim a job of a tenant that has no job in hand in that lane; None if there is none."""
        with self._lock:
            lanes = [lane for lane in self._runner.lanes if self._count_busy(lane) < TENANTS_AT_ONCE]
            if not lanes:
                return None
            job = self._runner.claim(self._claimant, lanes, turns=Turns(self._in_hand, self._served))
            if job is not None:
                self._in_hand.append((job.lane, job.tenant, job.collection_id))
                self._served.pop((job.lane, job.tenant), None)
                self._served[job.lane, job.tenant] = 1 + max(self._served.values(), default=0)
                if len(self._served) > REMEMBERED_TURNS:
                    del self._served[next(iter(self._served))]
            return job

    def _count_busy(self, lane: str) -> int:
        return sum(one == lane for one, _, _ in self._in_hand)

    def _work_through(self, job: Job | None) -> None:
        """Do the job, and then next ones."""
        while job is not None:
            try:
                self._runner.carry_out(job, self._should_stop, takes_turns=True)
            finally:
                with self._lock:
                    self._in_hand.remove((job.lane, job.tenant, job.collection_id))
            job = None if self._should_stop() else self._claim_next()
