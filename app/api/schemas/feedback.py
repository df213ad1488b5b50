"""Verdicts on the wire."""

from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from app.api.schemas.common import DEFAULT_COLLECTION, CollectionName, ExternalId, Flag, Model, RowId, Text
from app.services.feedback import Expansion, Named, Verdict

MAX_NAMED = 1_000


class SentenceRef(Model):
    """A sentence, by its id or by its passage and its text."""

    sentence_id: RowId | None = None
    passage_id: ExternalId | None = None
    text: Text | None = Field(default=None, max_length=20_000)

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        by_text = self.passage_id is not None and self.text is not None
        if (self.sentence_id is not None) == by_text or (
            self.sentence_id is not None and (self.passage_id is not None or self.text is not None)
        ):
            raise ValueError("name a sentence by sentence_id, or by passage_id and text")
        return self


def _named(reference: RowId | SentenceRef) -> Named:
    if isinstance(reference, SentenceRef):
        return Named(reference.sentence_id, reference.passage_id, reference.text)
    return Named(sentence_id=reference)


SentenceList = Annotated[list[RowId | SentenceRef], Field(max_length=MAX_NAMED)]


class ExpansionIn(Model):
    """A query expansion, stored with the event for key evolution."""

    method: Text = Field(max_length=100)
    text: Text = Field(max_length=20_000)


class FeedbackIn(Model):
    """What a judge says of one answered query."""

    query_id: UUID
    collection: CollectionName = DEFAULT_COLLECTION
    supporting: SentenceList = Field(default_factory=list, description="Sentences that helped.")
    rejected: SentenceList = Field(default_factory=list, description="Sentences that did not help.")
    missed: SentenceList = Field(
        default_factory=list, description="Evidence that retrieval did not return, learned like support."
    )
    partial: Flag = Field(
        default=False,
        description="True: only what is named is judged. False: activated sentences not named count as rejected.",
    )
    retrieval_success: Flag | None = None
    generation_success: Flag | None = None
    expansions: list[ExpansionIn] = Field(default_factory=list, max_length=100)
    judge: Text = Field(default="anonymous", max_length=200)
    confidence: float = Field(
        default=1.0, gt=0, le=1, strict=True, description="Divides the observation noise of this verdict."
    )
    wait: Flag = Field(default=False, description="Apply before answering, and say what changed.")

    def to_verdict(self) -> Verdict:
        """The verdict as the service takes it."""
        return Verdict(
            query_id=self.query_id,
            collection=self.collection,
            supporting=[_named(reference) for reference in self.supporting],
            rejected=[_named(reference) for reference in self.rejected],
            missed=[_named(reference) for reference in self.missed],
            partial=self.partial,
            retrieval_success=self.retrieval_success,
            generation_success=self.generation_success,
            expansions=[Expansion(expansion.method, expansion.text) for expansion in self.expansions],
            judge=self.judge,
            confidence=self.confidence,
        )


class ChangeOut(BaseModel):
    """What the event did to one state: a sentence's task or time memory, or its support for the question."""

    model_config = ConfigDict(from_attributes=True)

    sentence_id: int
    channel: str = Field(description="task, time or recall")
    target: int = Field(description="1 supported, 0 rejected")
    observation_noise: float
    gain: float
    residual: float
    perplexity_before: float
    perplexity_after: float


class FeedbackOut(BaseModel):
    """An accepted verdict and what became of it."""

    feedback_id: int
    query_id: UUID
    collection: str
    status: str = Field(description="pending, applied or parked")
    judge: str
    received_at: datetime
    applied_at: datetime | None
    error: str | None = Field(description="Why the last try to apply it failed.")
    changes: list[ChangeOut] | None = Field(description="What it changed; null where nobody waited for it.")


class FeedbackDetail(FeedbackOut):
    """An event with the verdict as it was resolved."""

    verdict: dict[str, Any]


class FeedbackPage(BaseModel):
    """Events in order of acceptance."""

    feedback: list[FeedbackOut]
    next_after: int | None = Field(description="Pass as after for the next page; null at the end.")
