"""Whether the process is alive, and whether it can serve."""

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict

from app.api.dependencies import App
from app.api.problems import responses

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
def get_readiness(app: App) -> Readiness:
    """503 while Postgres is out of reach. Without Redis queries go on and learning is delayed: degraded."""
    return Readiness.model_validate(app.health.readiness())
