"""Answers on the wire."""

from dataclasses import replace
from datetime import datetime
from typing import Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, Field

from engram.api.passage_source_schema import PassageSourceOut
from engram.api.problem_document import Problem
from engram.api.question.trace_schemas import EntityOut, TraceOut
from engram.api.schemas import ResponseModel, WarningOut
from engram.core.ranking.profiles import ProfileName
from engram.services.answers.joint_answers import JointAnswer
from engram.services.question.query import HopStopRule, Memory, Strategy
from engram.services.question.walk import StopReason


class SentenceOut(ResponseModel):
    """A sentence of an answered passage."""

    sentence_id: int
    position: int
    text: str
    score: float | None = Field(
        description="Its best score in any hop or its recall probability; null if no hop selected it."
    )
    hops: list[int]


class DuplicateOut(ResponseModel):
    """A passage that the answer leaves out, since another one has nearly its text."""

    passage_id: str
    title: str | None
    metadata: dict[str, Any]
    source: PassageSourceOut


PASSAGE_SCORE_DESCRIPTION = (
    "What the answer is ordered by. Compare it within one answer only, but for strategy `dense`. Strategy `graph` "
    "with profile `default`: log odds that the passage is evidence, but for a constant of the question (any "
    "number); with `paper`: similarity of its key plus its selected sentences (any number). `dense`: cosine of its "
    "key and the question (-1 to 1), which compares across answers of one collection. `lexical`: BM25 (above 0). "
    "`hybrid`: sum of reciprocal ranks (above 0, at most 0.033)."
)


class SurroundingPassageOut(ResponseModel):
    """A passage that stands beside an answered one."""

    passage_id: str
    title: str | None
    text: str
    source: PassageSourceOut
    sentences: list[SentenceOut] = Field(description="Empty unless the query includes `sentences`.")


class PassageContextOut(ResponseModel):
    """Context of a passage in its document: passages whose ids end in the numbers before and after its own.

    What you may not read, or what has no room, ends its side.
    """

    before: list[SurroundingPassageOut] = Field(description="In reading order.")
    after: list[SurroundingPassageOut]


class PassageHit(ResponseModel):
    """A ranked passage with the sentences that speak for it."""

    passage_id: str
    collection: str | None = Field(default=None, description="Its own, if the query asked several.")
    title: str | None
    text: str
    language: str = Field(description="Of its text, as it was given or recognised.")
    metadata: dict[str, Any]
    score: float = Field(description=PASSAGE_SCORE_DESCRIPTION)
    source: PassageSourceOut
    sentences: list[SentenceOut]
    explored: bool = Field(
        default=False, description="Whether it is there by chance, from below the passages wanted."
    )
    duplicates: list[DuplicateOut] = Field(
        default_factory=list,
        description=(
            "Passages with nearly its text, which it stands for. A verdict that names one of them counts for it."
        ),
    )
    context: PassageContextOut | None = Field(
        default=None, description="Null if the query did not ask for it, and in stored answers."
    )


class TimingsOut(ResponseModel):
    """Durations by stage, in milliseconds."""

    analyse_ms: float
    embed_ms: float
    search_ms: float
    total_ms: float


class SufficiencyLevelOut(ResponseModel):
    """The level below which an answer is withheld, and what it rests on."""

    value: float = Field(ge=0, le=1)
    source: Literal["prior", "passages", "verdicts"] = Field(
        description=(
            "'passages': questions made from the collection's passages and asked without them. 'verdicts': these, "
            "and answers that verdicts called sufficient. 'prior': nothing is measured yet; right answers of the "
            "data sets that the shipped weights were fitted to."
        )
    )
    confirmed: int = Field(ge=0, description="Answers of this collection that verdicts called sufficient.")


class CollectionAnswerOut(ResponseModel):
    """Answer of one of several collections, beside its passages in the joint list."""

    collection: str
    memory: Memory
    profile: ProfileName
    strategy: Strategy
    arm: str | None
    shadow: bool
    hops: int
    stop_reason: StopReason
    timings: TimingsOut
    sufficiency: float | None = Field(ge=0, le=1)
    insufficient: bool
    sufficiency_level: SufficiencyLevelOut | None
    entities: list[EntityOut] | None
    trace: TraceOut | None
    warnings: list[WarningOut]


class QueryOut(ResponseModel):
    """The answer to a query; feedback refers to it by ``query_id``."""

    query_id: UUID
    collection: str
    query: str
    memory: Memory
    profile: ProfileName
    strategy: Strategy = "graph"
    expanded: bool = Field(default=False, description="Whether the question came with expansions.")
    stop_rule: HopStopRule
    hops: int
    stop_reason: StopReason
    passages: list[PassageHit]
    timings: TimingsOut
    arm: str | None = Field(
        default=None, description="The arm of the collection's experiment that answered; null: none was given."
    )
    shadow: bool = Field(
        default=False, description="Whether memory was off because the collection serves in shadow."
    )
    sufficiency: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description=(
            "With what probability the first five passages hold all the evidence (docs/ranking.md); "
            "verdicts teach it. Null with profile 'paper', and with strategies other than 'graph'."
        ),
    )
    insufficient: bool = Field(
        default=False,
        description="Whether passages are withheld because sufficiency is below the query's min_sufficiency.",
    )
    sufficiency_level: SufficiencyLevelOut | None = Field(
        default=None, description="The level of min_sufficiency 'auto'. Null if the query did not ask for it."
    )
    trace_id: str | None = Field(
        default=None, description="The trace that the query belongs to, as its caller named it."
    )
    collapse_duplicates: bool = Field(
        default=False, description="Whether passages with nearly the text of a better one are left out."
    )
    entities: list[EntityOut] | None = None
    trace: TraceOut | None = None
    warnings: list[WarningOut] = Field(
        default_factory=list, description="What the LLM endpoint failed, and was done without it. Not kept."
    )
    collections: list[CollectionAnswerOut] = Field(
        default_factory=list,
        description=(
            "If the query asked several collections: how each answered. Then `collection` and what is not named "
            "here are the first one's, `sufficiency` is the highest, and `timings` are the longest."
        ),
    )

    @classmethod
    def join(cls, joint: JointAnswer) -> Self:
        """Build the answer of several collections."""
        answers = joint.answers
        hits = [
            PassageHit.model_validate(hit).model_copy(update={"collection": answers[place].collection})
            for place, hit in joint.passages
        ]
        return cls.model_validate(
            replace(
                answers[0],
                passages=[],
                sufficiency=joint.sufficiency,
                insufficient=all(one.insufficient for one in answers),
                timings=joint.timings,
                entities=None,
                trace=None,
                warnings=[warning for one in answers for warning in one.warnings],
            )
        ).model_copy(
            update={
                "passages": hits,
                "collections": [CollectionAnswerOut.model_validate(one) for one in answers],
            }
        )


class BatchedOut(ResponseModel):
    """Result of one question of a batch: its answer, or its error."""

    answer: QueryOut | None = None
    problem: Problem | None = None


class BatchOut(ResponseModel):
    """An answer or a problem for each question, in their order."""

    answers: list[BatchedOut]


class QueryExpansionOut(ResponseModel):
    """An expansion that a question came with."""

    method: str
    text: str


class ShownTextOut(ResponseModel):
    """The text of a passage that an answer showed."""

    passage_id: str
    sha256: str = Field(description="Of the text in UTF-8, as hexadecimal digits.")
    changed: bool = Field(
        description="Whether the passage has another text now. Then verdicts on this answer cannot name it."
    )


class EpisodeOut(QueryOut):
    """An answered query, read again, with its trace."""

    expansions: list[QueryExpansionOut] = Field(
        default_factory=list, description="What the question came with, as a verdict takes it."
    )
    filter: dict[str, Any] | None = Field(default=None, description="What passages' metadata had to meet.")
    judged: int = Field(description="Feedback events accepted for it.")
    created_at: datetime
    shown_texts: list[ShownTextOut] = Field(description="Which text each passage had when it was shown.")


class TracedQueryOut(ResponseModel):
    """A query of a trace."""

    query_id: UUID
    query: str
    created_at: datetime


class TracedQueriesOut(ResponseModel):
    """The queries of a trace, oldest first."""

    collection: str
    trace_id: str
    queries: list[TracedQueryOut]


class SuggestionsOut(ResponseModel):
    """Names and titles that begin with a prefix, those that most sentences have first."""

    collection: str
    suggestions: list[str]


class CitationOut(ResponseModel):
    """A sentence that the answer rests on."""

    sentence_id: int
    passage_id: str
    text: str
    source: PassageSourceOut


class AnswerOut(BaseModel):
    """An answer in words with the sentences it cites, and the retrieval it rests on."""

    answer: str = Field(description="Empty where the evidence gives no answer.")
    sufficient: bool = Field(description="Whether the model found the evidence sufficient.")
    citations: list[CitationOut]
    retrieval: QueryOut
    warnings: list[WarningOut] = Field(
        default_factory=list, description="That the LLM endpoint failed to answer: there is what was retrieved."
    )
