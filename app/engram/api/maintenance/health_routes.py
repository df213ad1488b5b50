"""Whether the process is alive, and whether it can serve."""

from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from engram.api.dependencies import App
from engram.api.problems import responses
from engram.api.request_principal import holder
from engram.api.schemas import ResponseModel
from engram.api.work_threads import WorkThreads
from engram.context.errors import UnavailableError

router = APIRouter(tags=["health"])

READINESS_THREADS = WorkThreads("engram-readiness", at_once=0)
"""Requests that wait for a server that says nothing may hold all threads of other routes."""


class Health(BaseModel):
    """The process answers."""

    status: str


class ReadinessOut(ResponseModel):
    """State of the servers that the process depends on, and of the backlog."""

    status: str = Field(
        description=(
            "'degraded' without Redis or a worker, with a backlog of minutes, with little disk left, or where the "
            "replica cannot be read on."
        )
    )
    postgres: str
    redis: str
    encoder: str
    language: str
    llm: str
    migrations: Literal["current", "newer"] = Field(
        description="'newer': a later version has migrated the database."
    )
    workers: int | None = Field(description="Workers that beat lately; null without Redis, where they beat.")
    oldest_verdict_seconds: float | None = Field(
        description="How long the oldest verdict that waits has waited; null where none waits."
    )
    oldest_job_seconds: float | None = Field(description="The same of jobs, from when they might have been begun.")
    disk_free_bytes: int | None = Field(description="Of the embedded Postgres's disk; null of another Postgres.")
    replica: Literal["none", "ok", "stale", "unreachable", "not a replica"] = Field(
        description="Where READ_DATABASE_URL stands; while that is not 'ok', queries are read on the primary."
    )
    replica_lag_seconds: float | None = Field(
        description="All that was committed longer ago is on the replica; null where that is not known."
    )


@router.get("/healthz", response_model=Health, summary="Is the process alive?")
async def get_health() -> Health:
    """Answer while the process runs, whatever else is down."""
    return Health(status="ok")


@router.get("/readyz", response_model=ReadinessOut, responses=responses(503), summary="Can it serve?")
async def get_readiness(request: Request, app: App) -> ReadinessOut:
    """Answer 503 while Postgres is out of reach, silent or not migrated, and once the process is told to stop.

    Where queries go on and learning is delayed, it is degraded, with 200.
    """
    if request.app.state.draining:
        raise UnavailableError("This process is ending.")
    readiness = await READINESS_THREADS.do(holder(request.scope), app.maintenance.health.readiness)
    return ReadinessOut.model_validate(readiness)
