"""Schemas of the verdicts behind an answer."""

from datetime import datetime

from pydantic import Field

from engram.api.schemas import ResponseModel


class CauseOut(ResponseModel):
    """A verdict that counts, and the question that it was on."""

    feedback_id: int = Field(validation_alias="event_id")
    judge: str
    question: str
    applied_at: datetime


class SentenceInfluenceOut(CauseOut):
    """Influence of one verdict on a selected sentence: each number less its value without the verdict."""

    score: float = Field(description="Of the sentence in its hop, by what the verdict did to memories.")
    recall_probability: float = Field(
        description="Of the sentence, by what the verdict did to supports of past questions."
    )


class PassageInfluenceOut(CauseOut):
    """Influence of one verdict on a passage's score: the score less its value without the verdict.

    Exact with one hop; with several, as far as the same entities and candidates are reached without the verdict.
    What it did to evolved keys is told apart.
    """

    score: float = Field(description="By all of the following together, which need not be their sum.")
    memory: float = Field(description="By the memories of sentences.")
    recall: float = Field(description="By the supports of past questions.")


class SufficiencyInfluenceOut(CauseOut):
    """Influence of one verdict on a probability of sufficiency."""

    probability: float = Field(description="As it is, less what it were without the verdict.")


class KeyCauseOut(CauseOut):
    """A verdict that brought a unit of a key; its credit is gain times weight."""

    gain: float
    weight: float


class KeyUnitTraceOut(ResponseModel):
    """A unit of an evolved key."""

    unit_id: int
    method: str
    text: str
    share: float = Field(description="Of what the key adds to its base, in (0, 1].")
    events: list[KeyCauseOut] = Field(description="The 10 verdicts that credit it most, of event_count.")
    event_count: int


class KeyTraceOut(ResponseModel):
    """The evolved key that a passage was found by."""

    similarity: float = Field(description="Cosine of the key with the question, expansions included.")
    base_similarity: float = Field(description="The same of its base key.")
    units: list[KeyUnitTraceOut] = Field(description="What it is composed of, best first.")


class FeatureTraceOut(ResponseModel):
    """A feature of a passage; value times weight is what it adds to the score."""

    value: float
    weight: float


class PassageTraceOut(ResponseModel):
    """Why a returned passage has its score, and what memory did to it."""

    passage_id: str
    rank: int
    rank_without_memory: int | None = Field(
        description="Null where it would not have been among the candidates. The question is searched again for it."
    )
    score: float = Field(description="The sum of value times weight over the features, and recall.")
    features: dict[str, FeatureTraceOut] = Field(
        description=(
            "Those that are not 0, by name (docs/ranking.md). None where features do not rank: with "
            "profile 'paper', and with strategies other than 'graph'."
        )
    )
    completes: str | None = Field(
        description="Of the passages found first, the one that it adds most to: a passage_id. Null if to none."
    )
    recall: float = Field(description="What recalled sentences add to the score.")
    key: KeyTraceOut | None = Field(description="Null where the passage has its base key.")
    influences: list[PassageInfluenceOut] = Field(description="At most 10, the strongest first.")
    influences_cut: bool = Field(description="Whether there may be more.")
    text_since: datetime = Field(
        description="When its text became what it is. Verdicts applied before were on an earlier text."
    )


class RejectionTraceOut(ResponseModel):
    """A passage that judges rejected for this question, or for one with the same need."""

    passage_id: str
    title: str | None
    rank: int | None = Field(description="In the answer, from 1; null where it is not shown.")
    probability: float = Field(description="That it is no evidence, by the rejections, in [0, 1].")
    score: float = Field(
        description="What the rejections change of its score; 0 where a support is more probable, or where it "
        "would not have been found."
    )
    judges: int | None = Field(
        description="How many say so; null where the log of nearby questions is too long to be read."
    )
    influences: list[PassageInfluenceOut] = Field(
        description="Their verdicts, at most 10, each of which can be revoked."
    )
    influences_cut: bool = Field(description="Whether there may be more.")
