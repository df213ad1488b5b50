"""Jobs on the wire."""

from datetime import datetime
from typing import Any, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from engram.api.schemas import ResponseModel
from engram.core.passage_keys.key_text import KeyBuilding
from engram.services.jobs.job_service import JobView

CANCELLABLE = ("queued", "running")


def build_job_url(job_id: UUID, collection: str, action: str = "") -> str:
    """Return the path of a job, or of an action on it such as ``/cancel``."""
    return f"/jobs/{job_id}{action}?collection={collection}"


class AcceptedJob(BaseModel):
    """Address of an accepted job."""

    job_id: UUID
    collection: str
    status_url: str = Field(description="Path below the service's address.")
    cancel_url: str = Field(description="Path to `POST` to until the job is over.")


class RevocationOut(BaseModel):
    """Filter of the verdicts that a job revokes; without one, all that were accepted before it."""

    model_config = ConfigDict(populate_by_name=True)

    judge: str | None = None
    since: datetime | None = Field(default=None, alias="from")
    before: datetime | None = Field(default=None, alias="to")


class ReplayOut(BaseModel):
    """Source and moment of a replay."""

    until: datetime
    into: str = Field(description="The collection that it makes.")


class JobOut(ResponseModel):
    """A job: what it is about, and how far it is.

    Counted are lines of an ingest, passages of a re-key job, verdicts of a revocation (`updated`: by it,
    `unchanged`: by others meanwhile), and what the stage of a replay is about: received = created + updated +
    unchanged + rejected + waiting. Of a job that failed or was cancelled, what was done by then stays done, but for
    the keys of a re-key job and the collection of a replay, which are there whole or not at all.
    """

    job_id: UUID
    collection: str
    kind: str = Field(
        description=(
            "ingest, rekey, reembed, revocation, erasure or replay; a wing adds its own kinds, as session and tune"
        )
    )
    key_building: KeyBuilding | None = Field(
        description="Of a re-key job: what keys are made of once it has succeeded; null: another job."
    )
    revocation: RevocationOut | None = Field(description="Of a job that revokes verdicts; null: another job.")
    replay: ReplayOut | None = Field(description="Of a job that brings back a past moment; null: another job.")
    status: str = Field(description="receiving, queued, running, succeeded, failed or cancelled")
    ahead: int | None = Field(
        description="Of a queued job: how many of the collection's jobs are done before it; null: it does not wait."
    )
    stage: str | None = Field(description="What a job that has several stages is at.")
    received: int
    created: int
    updated: int
    unchanged: int
    rejected: int
    waiting: int
    error: str | None = Field(description="The last failure; a job still queued or running is tried again.")
    result: dict[str, Any] | None = Field(
        description="Of a replay that succeeded: what the collection holds; of a reembed: of which encoder it is. "
        "Of an ingest, warnings by type: time-by-rules counts the sentences whose time the LLM failed to find, "
        "unknown-language the passages in a language that the encoder does not know."
    )
    cancel_requested_at: datetime | None = Field(
        description="When its end was asked for; a job still running ends as soon as what is in hand is whole."
    )
    cancel_url: str | None = Field(description="Path to `POST` to; null: nothing is left to cancel.")
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None

    @classmethod
    def from_service(cls, view: JobView, **more: Any) -> Self:
        """Convert a job."""
        job = view.job
        is_open = job.status in CANCELLABLE and job.cancel_requested_at is None
        return cls.combine(
            job,
            job_id=job.id,
            key_building=job.payload["key_building"] if job.kind == "rekey" else None,
            revocation=RevocationOut.model_validate(job.payload) if job.kind == "revocation" else None,
            replay=ReplayOut.model_validate(job.payload) if job.kind == "replay" else None,
            ahead=view.ahead,
            cancel_url=build_job_url(job.id, job.collection, "/cancel") if is_open else None,
            result=None if job.result is None else dict(job.result),
            **more,
        )


class LineError(BaseModel):
    """A line that was not ingested; the first line is 1."""

    line: int
    reason: str


class JobDetail(JobOut):
    """A job, with the lines of an ingest that were rejected."""

    errors: list[LineError] = Field(description="Rejected lines, a page of them.")
    next_errors_after: int | None = Field(description="Pass as errors_after for the next page; null at the end.")


class JobsOut(BaseModel):
    """A page of a collection's jobs, the latest first."""

    collection: str
    jobs: list[JobOut]
    next_before: int | None = Field(description="Pass as before for the next page; null at the end.")
