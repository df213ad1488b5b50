"""Whether the process is alive, and whether it can serve."""

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict

from app.api.dependencies import App
from app.api.problems import responses
from app.errors import UnavailableError

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """The process answers."""

    status: str


class Readiness(BaseModel):
    """What the process depends on."""

    model_config = ConfigDict(from_attributes=True)

    status: str
    postgres: str
    redis: str
    encoder: str
    language: str
    llm: str


@router.get("/healthz", response_model=Health, summary="Is the process alive?")
def get_health() -> Health:
    """Answers while the process runs, whatever else is down."""
    return Health(status="ok")


@router.get("/readyz", response_model=Readiness, responses=responses(503), summary="Can it serve?")
def get_readiness(request: Request, app: App) -> Readiness:
    """503 while Postgres is out of reach, and once the process is told to end.

    Without Redis queries go on and learning is delayed: degraded.
    """
    if request.app.state.draining:
        raise UnavailableError("This process is ending.")
    return Readiness.model_validate(app.health.readiness())
