"""Jobs: how far they are, what waits, and how to end one."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response, status

from engram.api.body_reading import Route
from engram.api.dependencies import App, JobAt, Limit, PathScope, cut_page, needs
from engram.api.jobs.schemas import AcceptedJob, JobDetail, JobOut, JobsOut, LineError, build_job_url
from engram.api.operations import operation
from engram.api.schemas import MAX_ID
from engram.core.auth.access_keys import ADMIN, READ

router = APIRouter(tags=["jobs"], route_class=Route)


@router.get("/jobs/{job_id}", **operation("Progress of a job", needs(READ, readers="lifted"), 404))
def get_job(
    app: App,
    at: JobAt,
    errors_after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    errors_limit: Limit = 100,
) -> JobDetail:
    """Show the job's progress, its place in the queue, and the rejected lines with reasons.

    Where passages have readers, it takes the scope `ingest` too, as a list of jobs does.
    """
    app.auth.access.check_ingest(at.scope)
    view = app.jobs.jobs.show(at.scope, at.id)
    app.auth.reads.note_write(at.scope.collection.id)
    rows = app.corpus.ingest.errors(view.job, errors_after, errors_limit + 1)
    errors, last = cut_page(rows, errors_limit)
    return JobDetail.from_service(
        view,
        errors=[LineError(line=line, reason=reason) for line, reason in errors],
        next_errors_after=last and last[0],
    )


@router.post(
    "/jobs/{job_id}/cancel",
    **operation(
        "Cancel a job",
        needs(ADMIN),
        404,
        409,
        answers={202: {"model": JobOut, "description": "It runs, and ends as soon as what is in hand is whole."}},
    ),
)
def post_cancel(app: App, at: JobAt, response: Response) -> JobOut:
    """Cancel a job. It stays in the list as `cancelled`, with what it had finished.

    One that waits ends at once. Cancelling again changes nothing. One that is over already is a conflict, and so is
    one whose lines are still arriving.
    """
    view = app.jobs.jobs.cancel(at.scope, at.id)
    if view.job.status != "cancelled":
        response.status_code = status.HTTP_202_ACCEPTED
    return JobOut.from_service(view)


@router.get("/collections/{name}/jobs", **operation("List a collection's jobs", needs(READ, readers="lifted"), 404))
def get_jobs(
    app: App,
    scope: PathScope,
    before: Annotated[int | None, Query(ge=1, le=MAX_ID)] = None,
    limit: Limit = 100,
) -> JobsOut:
    """List the collection's jobs, the latest first."""
    app.auth.access.check_ingest(scope)
    jobs_page, last = cut_page(app.jobs.jobs.page(scope, before, limit + 1), limit)
    return JobsOut(
        collection=scope.collection.name,
        jobs=[JobOut.from_service(shown) for shown in jobs_page],
        next_before=last and last.job.number,
    )


def build_accepted(job_id: UUID, collection: str, response: Response) -> AcceptedJob:
    """The answer to a request that a job will carry out."""
    status_url = build_job_url(job_id, collection)
    response.headers["Location"] = status_url
    cancel_url = build_job_url(job_id, collection, "/cancel")
    return AcceptedJob(job_id=job_id, collection=collection, status_url=status_url, cancel_url=cancel_url)
