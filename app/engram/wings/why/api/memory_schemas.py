"""Schemas of sentence memories."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import AliasPath, Field

from engram.api.schemas import ResponseModel

Channel = Literal["task", "time"]


class ChannelOut(ResponseModel):
    """A channel of a sentence's memory as it stands."""

    channel: Channel
    perplexity: float = Field(description="1 where no verdict touched it.")
    update_count: int
    base_similarity: float | None = Field(description="Cosine of what it began as with `query`; null without one.")
    similarity: float | None = Field(
        description="Cosine of the memory as it stands with `query`; null without one."
    )


class QuestionSupportOut(ResponseModel):
    """Support of a past question by the sentence."""

    question_id: int
    question: str
    support: float
    perplexity: float
    update_count: int
    complete: bool = Field(description="Whether the last verdict claimed to name all evidence.")


class MoveOut(ResponseModel):
    """Effect of a verdict on one channel."""

    channel: Literal["task", "time", "recall"]
    target: int = Field(description="1: the verdict supports the sentence, 0: it does not.")
    gain: float
    residual: float
    perplexity_before: float
    perplexity_after: float
    similarity_before: float = Field(
        description="Cosine of the memory with the verdict's question, as it was then; of 'recall', the support."
    )
    similarity_after: float = Field(description="The same after the verdict.")
    similarity_now: float | None = Field(description="The same of the memory as it stands; null for 'recall'.")


class SentenceEventOut(ResponseModel):
    """A verdict that counts, and what it did to the sentence."""

    sequence: int = Field(description="Its place in the order in which verdicts were applied.")
    feedback_id: int = Field(validation_alias="event_id")
    judge: str
    query_id: UUID
    question: str
    applied_at: datetime
    moves: list[MoveOut]


class SentenceMemoryOut(ResponseModel):
    """Memory of a sentence, and the verdicts behind it."""

    sentence_id: int = Field(validation_alias=AliasPath("sentence", "id"))
    collection: str
    text: str = Field(validation_alias=AliasPath("sentence", "text"))
    position: int = Field(validation_alias=AliasPath("sentence", "position"))
    passage_id: str = Field(validation_alias=AliasPath("sentence", "passage_id"))
    title: str | None = Field(validation_alias=AliasPath("sentence", "title"))
    channels: list[ChannelOut] = Field(description="'time' only of a sentence that speaks of a time.")
    supports: list[QuestionSupportOut] = Field(description="At most 100, those it supports most surely.")
    support_count: int
    history: list[SentenceEventOut] = Field(
        validation_alias="events", description="In the order in which verdicts were applied."
    )
    next_after: int | None = Field(description="Pass as after for the next page; null at the end.")
