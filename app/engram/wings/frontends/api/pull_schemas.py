"""Pulled scores on the wire."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, StrictInt

from engram.api.schemas import ExternalId, JudgeName, Model, Moment, ResponseModel, Whole
from engram.wings.frontends.services.pull_ledger import PulledScore

MAX_SCORES = 1_000
MAX_REVISION = 2**31 - 1
LEDGER_EXAMPLES: list[JsonValue] = [
    {
        "scores": [
            {
                "score_id": "8f1c",
                "judge": "langfuse",
                "rating": "up",
                "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                "revision": 1,
                "scored_at": "2026-05-01T12:00:00Z",
                "queries": ["0b7c5f0e-3f0a-4a52-9c38-3c5d0c5f8a11"],
            }
        ]
    }
]


def _check_distinct(scores: list["PulledScoreIn"]) -> list["PulledScoreIn"]:
    if len({score.score_id for score in scores}) < len(scores):
        raise ValueError("must have each score once")
    return scores


class PulledScoreIn(Model):
    """A score of another product, as a pull last sent it."""

    score_id: ExternalId = Field(description="The product's id of the score.")
    judge: JudgeName
    rating: Literal["up", "down"] | None = Field(description="Null: the score was deleted, and its rating revoked.")
    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] = Field(
        description="SHA-256 of everything that the rating says."
    )
    revision: Annotated[StrictInt, Field(ge=1, le=MAX_REVISION), Whole] = Field(
        description="How often it was sent."
    )
    scored_at: Moment
    queries: list[UUID] = Field(max_length=1_000, description="Queries that were rated.")


class PulledScoresIn(Model):
    """Scores to store in place of what was stored of them."""

    model_config = ConfigDict(json_schema_extra={"examples": LEDGER_EXAMPLES})

    scores: Annotated[
        list[PulledScoreIn], Field(min_length=1, max_length=MAX_SCORES), AfterValidator(_check_distinct)
    ]

    def to_ledger(self) -> list[PulledScore]:
        """The scores as the service takes them."""
        return [PulledScore(**score.model_dump()) for score in self.scores]


class PulledScoreOut(ResponseModel):
    """A score of another product, as a pull last sent it."""

    score_id: str
    judge: str
    rating: Literal["up", "down"] | None = Field(description="Null: the score was deleted, and its rating revoked.")
    digest: str
    revision: int
    scored_at: datetime
    queries: list[UUID]


class PulledScoresOut(BaseModel):
    """Scores of a source, in order of their ids."""

    collection: str
    source: str
    scores: list[PulledScoreOut]
    next_after: str | None = Field(description="Pass as after for the next page; null at the end.")


class StoredScoresOut(BaseModel):
    """The number of scores that were stored."""

    collection: str
    source: str
    stored: int
