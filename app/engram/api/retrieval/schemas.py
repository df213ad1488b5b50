"""Queries and answers on the wire."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictBool, StrictInt, model_validator

from engram.api.passage_source_schema import PassageSourceOut
from engram.api.problem_document import Problem
from engram.api.retrieval.trace_schemas import (
    FeatureTraceOut,
    PassageTraceOut,
    RejectionTraceOut,
    SentenceInfluenceOut,
    SufficiencyInfluenceOut,
)
from engram.api.schemas import (
    DEFAULT_COLLECTION,
    CollectionName,
    ExpansionIn,
    MetadataFilter,
    Model,
    OnBehalfOf,
    Question,
    ResponseModel,
    Storable,
    Text,
    TraceId,
    WarningOut,
    Whole,
)
from engram.core.filter.logged_verdict import Expansion
from engram.core.ranking.profiles import ProfileName
from engram.core.ranking.question_contrasts import Contrast
from engram.services.answers.joint_answers import MOST_COLLECTIONS, JointAnswer
from engram.services.answers.passage_context import ContextPart
from engram.services.auth.scope import Scope
from engram.services.question.query import HopStopRule, Include, Memory, Query, Strategy
from engram.services.question.walk import StopReason

QUESTION = "Which timepiece was first built by the discoverer of the moon of Saturn that has lakes of methane?"
QUERY_EXAMPLES: list[JsonValue] = [
    {"collection": "sample", "query": QUESTION},
    {
        "collection": "sample",
        "query": QUESTION,
        "top_k": 10,
        "arm": {"memory": "off", "profile": "paper"},
        "filter": {"topic": "space"},
        "include": ["trace"],
    },
    {
        "collection": "sample",
        "query": QUESTION,
        "arm": {"strategy": "hybrid"},
        "expansions": [{"method": "prf", "text": "pendulum clock, Huygens, Titan"}],
    },
]
MAX_EXPANSIONS = 20
MAX_QUERIES = 50
MAX_CONTEXT_PASSAGES = 10
MAX_CONTEXT_CHARACTERS = 20_000


class ArmIn(Model):
    """Memory, profile and strategy of an answer."""

    memory: Memory = Field(default="read", description="Whether learned state is read.")
    profile: ProfileName = Field(
        default="default",
        description=(
            "'paper': the published method, as far as docs/paper.md says; 'default': ours. "
            "Makes no difference to strategies other than 'graph'."
        ),
    )
    strategy: Strategy = Field(
        default="graph",
        description=(
            "'graph': walk the entity-sentence-passage graph. The others rank passages by their keys alone, with "
            "neither hops nor recall: 'dense' by cosine, 'lexical' by BM25, 'hybrid' by both, fused by reciprocal "
            "ranks. With memory 'read' a passage's key is its evolved one, if it has one."
        ),
    )


class ContextIn(Model):
    """What is wanted of the document around each passage: the passages before and after it, or its section."""

    before: Annotated[StrictInt, Field(ge=0, le=MAX_CONTEXT_PASSAGES), Whole] = Field(
        default=1, description="Passages before it, at most."
    )
    after: Annotated[StrictInt, Field(ge=0, le=MAX_CONTEXT_PASSAGES), Whole] = Field(
        default=1, description="Passages after it, at most."
    )
    section: StrictBool = Field(
        default=False,
        description="Instead, the passages below the same heading on both sides of it; of a passage without one, "
        "those without.",
    )
    characters: Annotated[StrictInt, Field(ge=1, le=MAX_CONTEXT_CHARACTERS), Whole] = Field(
        default=4_000, description="Of the passages around one, at most; nearer ones have room first."
    )


class QueryIn(Model):
    """A question."""

    model_config = ConfigDict(json_schema_extra={"examples": QUERY_EXAMPLES})

    query: Question
    collection: CollectionName = DEFAULT_COLLECTION
    as_: OnBehalfOf = None
    top_k: Annotated[StrictInt, Field(ge=1, le=100), Whole] = Field(default=5, description="Passages wanted.")
    max_hops: Annotated[StrictInt, Field(ge=1, le=10), Whole] | None = Field(
        default=None, description="Null: the profile's own. Only with strategy 'graph'."
    )
    arm: ArmIn = Field(
        default_factory=ArmIn,
        description="Absent: an arm of the collection's experiment, if it has one, else the defaults.",
    )
    unit: Text | None = Field(
        default=None,
        max_length=200,
        description="Your id of a user or a session: one unit stays in one arm of an experiment. Not kept.",
    )
    filter: MetadataFilter | None = None
    time_constraint: Storable | None = Field(
        default=None,
        max_length=500,
        description=(
            "Null: looked for in the question, in strategy 'graph'. Empty: none. Else the phrase itself. The other "
            "strategies only keep it for verdicts."
        ),
    )
    stop_rule: HopStopRule | None = Field(
        default=None,
        description=(
            "What may end the hops early. 'coverage': the evidence names every content word of the question, "
            "or verdicts on a nearby past question vouch for it. 'learned': the first five passages, ranked after "
            "every hop, are likely enough (profile 'default' only). 'llm': the endpoint says so. "
            "Null: 'coverage' in profile default, 'none' in paper. Only with strategy 'graph'."
        ),
    )
    min_sufficiency: Annotated[float, Field(ge=0, le=1, strict=True)] | Literal["auto"] | None = Field(
        default=None,
        description=(
            "If the probability that the first five passages hold all the evidence is lower, the answer has none "
            "and says that it is insufficient. 'auto': the level at which about one right answer in ten is "
            "withheld; `sufficiency_level` shows it. Only with strategy 'graph' and profile 'default'."
        ),
    )
    collapse_duplicates: StrictBool | None = Field(
        default=None,
        description=(
            "Whether passages with nearly the text of a better one are left out and named on that one. "
            "Null: they are, but not in profile 'paper'."
        ),
    )
    include: list[Include] = Field(
        default_factory=list,
        max_length=10,
        description=(
            "'sentences': all sentences of each passage; 'entities'; 'trace'; 'context': what stands around each "
            "passage in its document."
        ),
    )
    context: ContextIn | None = Field(
        default=None, description="How much context each passage gets; needs no `include` besides."
    )
    expansions: list[ExpansionIn] = Field(
        default_factory=list,
        max_length=MAX_EXPANSIONS,
        description=(
            "Widen what passage keys are compared with: all together weigh as much as the question. Entities, "
            "sentences and what is remembered of the question go by its own words. Embedding them takes its time; "
            "sent with a verdict instead, they evolve the keys, and later questions need none."
        ),
    )

    trace_id: TraceId | None = Field(
        default=None,
        description=(
            "Your id of the trace or the message that this is for, by which scores find it (integrations/pull). "
            "Absent: the trace id of the `traceparent` header, if there is one."
        ),
    )

    def to_query(self, scope: Scope, parent_trace: str | None = None) -> Query:
        """The question as the service takes it; ``parent_trace`` is the trace id of the request's headers."""
        context = self.context or (ContextIn() if "context" in self.include else None)
        return Query(
            text=self.query,
            scope=scope,
            top_k=self.top_k,
            max_hops=self.max_hops,
            memory=self.arm.memory,
            profile=self.arm.profile,
            strategy=self.arm.strategy,
            stop_rule=self.stop_rule,
            min_sufficiency=self.min_sufficiency,
            filter=self.filter,
            time_constraint=None if self.time_constraint is None else self.time_constraint.strip(),
            include=frozenset(self.include),
            expansions=[Expansion(expansion.method, expansion.text) for expansion in self.expansions],
            caller_chose_arm="arm" in self.model_fields_set,
            unit=self.unit,
            collapse_duplicates=self.collapse_duplicates,
            trace_id=self.trace_id or parent_trace,
            parts=() if context is None else (ContextPart(**context.model_dump()),),
        )


class JointQueryIn(QueryIn):
    """A question to one collection, or to several."""

    collections: list[CollectionName] = Field(
        default_factory=list,
        max_length=MOST_COLLECTIONS,
        description=(
            "In place of `collection`, which does not count then: several, whose passages are merged into one "
            "list. Each keeps the query under the answer's `query_id`, and takes verdicts on its own passages."
        ),
    )

    @model_validator(mode="after")
    def _name_each_once(self) -> Self:
        if self.collections:
            if len(set(self.collections)) < len(self.collections):
                raise ValueError("collections names one twice")
            self.collection = self.collections[0]
        return self


class BatchIn(Model):
    """Several questions in one request."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"queries": [QUERY_EXAMPLES[0], {"collection": "sample", "query": "Titan?"}]}]
        }
    )

    queries: list[QueryIn] = Field(min_length=1, max_length=MAX_QUERIES)


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
    """What stands around a passage in its document: passages whose ids end in the numbers before and after its own.

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

    probability: float = Field(description="The highest of model, vouched and remembered, times undenied.")
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
        description="What judges of earlier answers to the same question leave of it, in (0, 1].",
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
        default_factory=list, description="Typing errors of the question. Not kept."
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
    """How one of several collections answered, beside its passages in the joint list."""

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


class AnswerIn(QueryIn):
    """A question to answer in words."""


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
