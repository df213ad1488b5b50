"""Kinds of jobs, and a claimed job, by which its handler reports progress and learns when to stop."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from engram.storage.corpus import collections
from engram.storage.database import Writer
from engram.storage.jobs import job_claims, jobs
from engram.storage.jobs.jobs import Job


@dataclass(frozen=True, slots=True)
class JobKind:
    """A kind of job.

    Attributes:
        lane: jobs of one lane and collection are done one by one, in the order in which they were asked for. A
            worker does a few jobs of a lane at once, each of another tenant.
        single: a collection has at most one open job of the kind, because a second would undo the first.
    """

    name: str
    lane: str
    single: bool = False


class ClaimLostError(Exception):
    """Another worker has claimed the job, or it is gone; the transaction must be undone."""


class Work:
    """A claimed job. Each transaction that does some of it is passed to ``advance``, ``report`` or ``finish``.

    Attributes:
        job: the job with its counts, as it was claimed.
        cancelled: whether somebody asked for its end.
        lost: whether another worker has claimed it, or it is gone.
        finished: whether the handler has done all of it.
        yielded: whether it stops because its turn is over and other jobs wait.
    """

    def __init__(
        self, job: Job, should_stop: Callable[[], bool], others_wait: Callable[[], bool] = lambda: False
    ) -> None:
        """Begin with a claimed job.

        Args:
            should_stop: whether the process ends.
            others_wait: whether the job's turn is over and other jobs wait; called only once some of it is done.
        """
        self.job = job
        self.cancelled = job.cancel_requested_at is not None
        self.lost = False
        self.finished = False
        self.yielded = False
        self._progressed = False
        self._should_stop = should_stop
        self._others_wait = others_wait

    def lock(self, writer: Writer) -> Job:
        """Keep the collection from being deleted while the transaction lasts, and return the job as it is now.

        Raises:
            NotFoundError: the collection is gone.
            ClaimLostError: the job is gone.
        """
        if not collections.lock_against_deletion(writer, self.job.collection_id):
            raise collections.build_gone_error(self.job.collection)
        current = jobs.find(writer, self.job.collection_id, self.job.id)
        if current is None:
            raise ClaimLostError
        return current

    def should_stop(self) -> bool:
        """Whether to return after the batch in hand: the job goes on in its next turn, or has ended."""
        return self.must_stop() or self.should_yield()

    def must_stop(self) -> bool:
        """Whether to return for any reason but waiting jobs."""
        return self.cancelled or self.lost or self._should_stop()

    def should_yield(self) -> bool:
        """Whether to return because other jobs wait; not before a transaction of this turn has done some of it."""
        self.yielded = self.yielded or (self._progressed and self._others_wait())
        return self.yielded

    @property
    def is_unwanted(self) -> bool:
        """Whether nobody needs the rest of the job: computations may break off at once."""
        return self.cancelled or self.lost

    def advance(
        self,
        writer: Writer,
        *,
        created: int = 0,
        updated: int = 0,
        unchanged: int = 0,
        position: int | None = None,
    ) -> None:
        """Count what the transaction does.

        Raises:
            ClaimLostError: the job is not ours any more.
        """
        self.hear(
            job_claims.advance(
                writer, self.job, created=created, updated=updated, unchanged=unchanged, position=position
            )
        )
        self._progressed = True

    def warn(self, writer: Writer, kind: str, count: int, detail: str) -> None:
        """Add a warning to the job's result: something was done in another way than was configured.

        Args:
            kind: what was done instead, such as "time-by-rules".
            count: how often, since the last call.
            detail: why, on the last occasion.

        Raises:
            ClaimLostError: the job is not ours any more.
        """
        self.hear(job_claims.warn(writer, self.job, kind, count, detail))

    def report(
        self,
        writer: Writer,
        *,
        received: int,
        updated: int,
        unchanged: int = 0,
        stage: str | None = None,
        keep_result: bool = True,
    ) -> None:
        """Report how many are done; with ``keep_result`` the next try goes on from here if this one fails.

        Raises:
            ClaimLostError: the job is not ours any more.
        """
        self.hear(
            job_claims.report(
                writer,
                self.job,
                received=received,
                updated=updated,
                unchanged=unchanged,
                stage=stage,
                keep_result=keep_result,
            )
        )
        self._progressed = self._progressed or keep_result

    def finish(self, writer: Writer, result: Mapping[str, Any] | None = None) -> None:
        """Close the job, in the transaction that does the last of it.

        Raises:
            ClaimLostError: the job is not ours any more.
        """
        self.close(writer, "succeeded", result=result)
        self.finished = True

    def close(
        self,
        writer: Writer,
        status: str,
        *,
        error: str | None = None,
        result: Mapping[str, Any] | None = None,
    ) -> None:
        """End the job.

        Raises:
            ClaimLostError: the job is not ours any more.
        """
        if not job_claims.close(writer, self.job, status, error=error, result=result):
            self.hear(None)

    def hear(self, cancelled: bool | None) -> None:
        """Note what the job's row says: whether the job was cancelled; None if the claim is lost.

        Raises:
            ClaimLostError: the claim is lost.
        """
        if cancelled is None:
            self.lost = True
            raise ClaimLostError(f"job {self.job.id} is not ours any more")
        self.cancelled = cancelled


class JobHandler(Protocol):
    """Does the jobs of a kind."""

    def run(self, work: Work) -> None:
        """Do the job until ``work.finish`` closes it, or until ``work.should_stop``.

        An exception is a failed try, unless a server is away. The method is called again after a failed try, after
        a stop and after its worker was lost. It goes on from what its transactions left.
        """
        ...

    def let_go(self, writer: Writer, job: Job) -> None:
        """Remove what is staged for a job, in the transaction that closes it as failed or cancelled."""
        ...
