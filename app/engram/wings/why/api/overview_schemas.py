"""Schemas of learning overviews and revocation previews."""

from datetime import datetime
from typing import Literal, Self

from pydantic import BaseModel, Field

from engram.api.schemas import ResponseModel
from engram.wings.why.services.learning_overview import LearningSummary, RevocationPreview


class MomentOut(ResponseModel):
    """Counts after a verdict was applied."""

    at: datetime
    verdicts: int = Field(description="That were applied by then.")
    states: int = Field(description="Memories that they had moved.")
    perplexity: float | None = Field(description="The mean of these memories'; null where none was moved.")


class MovedOut(ResponseModel):
    """A channel of a sentence's memory as its last verdict left it."""

    sentence_id: int
    text: str
    passage_id: str
    title: str | None
    channel: Literal["task", "time"]
    perplexity: float
    update_count: int
    moved_at: datetime
    feedback_id: int = Field(validation_alias="event_id", description="The verdict that moved it last.")


class LearnedOut(ResponseModel):
    """Learning of a collection by the counting verdicts."""

    collection: str
    verdicts: int
    states: int = Field(description="Memories that verdicts moved: a sentence's, and its time's.")
    perplexity: float | None = Field(description="The mean of these memories'; null where none was moved.")
    course: list[MomentOut] = Field(description="In order of time, at most 60 moments.")
    memories: list[MovedOut] = Field(description="Those moved last, the latest first.")

    @classmethod
    def from_service(cls, collection: str, learned: LearningSummary) -> Self:
        """Convert a summary."""
        return cls.combine(learned, collection=collection)


class LeftOut(ResponseModel):
    """A state as it stands, and as it would stand without the verdict."""

    sentence_id: int
    text: str
    passage_id: str
    title: str | None
    channel: Literal["task", "time", "recall"]
    perplexity: float
    without_perplexity: float
    likeness: float = Field(
        description="Cosine of the memory with the verdict's question; of 'recall', how surely it supports it."
    )
    without_likeness: float


class PreviewOut(BaseModel):
    """Effects of revoking a verdict."""

    collection: str
    feedback_id: int
    judge: str
    status: str = Field(
        description="pending, applied, parked or revoked; only what is applied has changed anything."
    )
    states: list[LeftOut]
    cut: bool = Field(description="Whether there are more states than are shown.")
    models: list[Literal["sufficiency", "reranker", "round"]] = Field(
        description="Whose weights would lose what it taught."
    )

    @classmethod
    def from_service(cls, collection: str, preview: RevocationPreview) -> Self:
        """Convert a preview."""
        return cls.model_validate(
            {
                "collection": collection,
                "feedback_id": preview.event_id,
                "judge": preview.judge,
                "status": preview.status,
                "states": [LeftOut.model_validate(state) for state in preview.states],
                "cut": preview.cut,
                "models": list(preview.models),
            }
        )
