"""Looking at jobs, and cancelling them."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

import structlog

from engram.context.errors import ConflictError
from engram.services.auth.scope import Scope
from engram.services.jobs.work import JobHandler, JobKind
from engram.storage.corpus import collections
from engram.storage.corpus.collections import JOB
from engram.storage.database import Database
from engram.storage.jobs import jobs
from engram.storage.jobs.jobs import Job

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class JobView:
    """A job, and how many of its collection's jobs are done before it; None: it does not wait."""

    job: Job
    ahead: int | None


class JobsService:
    """Reports on the jobs of a collection and cancels them."""

    def __init__(self, database: Database, handlers: Mapping[JobKind, JobHandler]) -> None:
        self._database = database
        self._handlers = {kind.name: handler for kind, handler in handlers.items()}

    def job(self, scope: Scope, job_id: UUID) -> Job:
        """The job.

        Raises:
            NotFoundError: there is no such job.
        """
        return self.show(scope, job_id).job

    def show(self, scope: Scope, job_id: UUID) -> JobView:
        """The job and its place in the queue.

        Raises:
            NotFoundError: there is no such job.
        """
        target = scope.collection
        with self._database.read() as reader:
            job = jobs.find(reader, target.id, job_id)
            if job is None:
                raise collections.build_missing_resource_error(JOB, job_id)
            return JobView(job, jobs.count_ahead(reader, target.id, [job_id]).get(job_id))

    def page(self, scope: Scope, before: int | None, limit: int) -> list[JobView]:
        """The collection's jobs, the latest first, those before the number ``before``."""
        with self._database.read() as reader:
            jobs_page = jobs.page(reader, scope.collection.id, before, limit)
            ahead = jobs.count_ahead(
                reader, scope.collection.id, [job.id for job in jobs_page if job.status == "queued"]
            )
        return [JobView(job, ahead.get(job.id)) for job in jobs_page]

    def cancel(self, scope: Scope, job_id: UUID) -> JobView:
        """Have a job end before its end: at once if it waits, else as soon as what is in hand is whole.

        Asking again changes nothing.

        Raises:
            NotFoundError: there is no such job.
            ConflictError: it is over already, or what it is about is still arriving.
        """
        target = scope.collection
        with self._database.write() as writer:
            if not collections.lock_against_deletion(writer, target.id):
                raise collections.build_gone_error(target.name)
            job = jobs.request_cancel(writer, target.id, job_id)
            if job is None:
                raise collections.build_missing_resource_error(JOB, job_id)
            if job.status == "cancelled":
                self._handlers[job.kind].let_go(writer, job)
        if job.status == "receiving":
            raise ConflictError(f"Job {job_id} is still receiving what it is about.")
        if job.status in {"succeeded", "failed"}:
            raise ConflictError(f"Job {job_id} is over: it has {job.status}.")
        log.info("job to be cancelled", job_id=str(job_id), collection=target.name, status=job.status)
        return JobView(job, None)
