"""Traces of answers on the wire, with the verdicts behind them."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from engram.api.schemas import ResponseModel
from engram.core.ranking.question_contrasts import Contrast


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


class EntityOut(ResponseModel):
    """A mention in the question and the entity it was aligned to."""

    mention: str
    entity_id: int
    name: str
    similarity: float


class RecallOut(ResponseModel):
    """A sentence that a verdict on a past question brought in."""

    sentence_id: int
    past_question: str | None = Field(description="Null to whom what others asked is not to be shown.")
    similarity: float = Field(description="Cosine of the two questions.")
    same_need: float = Field(
        description="Probability that the sentence's passage is evidence, by all past questions near this one."
    )
    nearness: float = Field(
        description="Nearness of the two questions in standard units of the collection; 0 is the mean."
    )
    words: float = Field(description="Cosine of the words of the two questions, weighted by rarity, in [0, 1].")
    contrasts: list[Contrast] = Field(
        description="What makes the two questions different: other figures or names, a figure or a name that only "
        "one has, negation, or a date against the present."
    )
    supporters: int = Field(description="Judged questions near this one that this passage answered.")
    others: int = Field(description="Judged questions near this one that other passages answered.")
    learned_from: int = Field(
        description="Judged questions of the collection that taught what past questions are worth; 0: nothing is "
        "judged, and the probability is a prior."
    )
    support: float
    perplexity: float
    recall_probability: float = Field(
        description="Probability that the sentence is evidence, by this recall, in [0, 1]."
    )


class SentenceTraceOut(ResponseModel):
    """Every factor of a selected sentence's score: activation x semantic x task x time, over their sum."""

    sentence_id: int
    passage_id: str
    text: str
    score: float
    activation: float
    activated_by: list[str]
    semantic: float
    task_factor: float
    task_perplexity: float
    time_factor: float
    time_perplexity: float
    recall_probability: float
    influences: list[SentenceInfluenceOut] = Field(
        default_factory=list, description="The verdicts that moved it, at most 10, the strongest first."
    )
    influences_cut: bool = Field(default=False, description="Whether there may be more.")


class HopOut(ResponseModel):
    """One propagation round."""

    hop: int
    entities: dict[str, float]
    candidates: int
    sentences: list[SentenceTraceOut]
    coverage: float | None


class SufficiencyOut(ResponseModel):
    """Derivation of the probability of sufficiency."""

    probability: float = Field(description="The highest of model, vouched and remembered, as undenied leaves them.")
    model: float = Field(description="By the features: 1 / (1 + exp(-sum of value times weight)).")
    vouched: float = Field(
        description="By verdicts on nearby past questions that claimed to name all evidence, in [0, 1]."
    )
    remembered: float = Field(
        default=0.0,
        description=(
            "Lower bound by verdicts on nearby past questions: how sufficient those answers were whose evidence is "
            "among the first five again, in [0, 1]."
        ),
    )
    undenied: float = Field(
        default=1.0,
        description=(
            "The share that judges of earlier answers to the same question leave, in (0, 1]; of model, before its "
            "calibration."
        ),
    )
    features: dict[str, FeatureTraceOut] = Field(
        description="By name (docs/ranking.md). None where nothing was found."
    )
    events: int = Field(description="Verdicts in the weights.")
    influences: list[SufficiencyInfluenceOut] = Field(
        default_factory=list,
        description="At most 10 of them, the strongest first; where the query asked for a trace.",
    )
    influences_cut: bool = Field(default=False, description="Whether there are more.")
    judgements: list[SufficiencyInfluenceOut] = Field(
        default_factory=list,
        description=(
            "At most 10 verdicts that undenied follows from, with their influence on the probability; where the "
            "query asked for a trace."
        ),
    )


class VersionTraceOut(ResponseModel):
    """The version of a text that the question was taken to be about."""

    asked: Literal["last", "then", "previous", "changes"] = Field(
        description="The last one that holds, the one of a time that the question names, the one before, or the "
        "two last ones."
    )
    moved: int = Field(description="Passages that have another place for it.")


class CorrectionOut(ResponseModel):
    """A word of the question that the collection does not have, and its word that was meant."""

    typed: str
    corrected: str


class TraceOut(ResponseModel):
    """Trace of an answer."""

    time_constraint: str | None
    entities: list[EntityOut]
    recalled: list[RecallOut]
    hops: list[HopOut]
    passages: list[PassageTraceOut] | None = Field(
        default=None,
        description="What memory did to each returned passage; null where the query did not ask for a trace.",
    )
    rejected: list[RejectionTraceOut] | None = Field(
        default=None,
        description="Passages that judges rejected for this question or one with the same need, the surest "
        "first; null where the query did not ask for a trace.",
    )
    sufficiency: SufficiencyOut | None = Field(
        default=None, description="Null with profile 'paper', and with strategies other than 'graph'."
    )
    collapsed: int | None = Field(
        default=None,
        description="Candidates that were left out as duplicates of better ones; null where none would be.",
    )
    language: str | None = Field(
        default=None,
        description="Of the question; of its collection, if the question does not tell and that has one language.",
    )
    lexical_terms: int = Field(
        default=0, description="Terms of the question and its expansions that are matched word for word."
    )
    versions: VersionTraceOut | None = Field(
        default=None, description="Null where no passage has another version of its text."
    )
    corrections: list[CorrectionOut] = Field(
        default_factory=list,
        description="Words taken for typing errors, or searched for with a near one. Not kept.",
    )
