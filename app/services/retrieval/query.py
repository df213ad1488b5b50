"""What a query asks and what it is answered; the answer is also what an episode remembers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from app.core.verdict import Expansion
from app.storage.corpus.collections import Collection

Memory = Literal["off", "read"]
ProfileName = Literal["paper", "default"]
Strategy = Literal["graph", "dense", "lexical", "hybrid"]
Sufficiency = Literal["none", "coverage", "llm"]
Include = Literal["sentences", "entities", "trace"]
StopReason = Literal["max_hops", "sufficient", "no_entities", "no_candidates", "no_hops"]


@dataclass(frozen=True, slots=True)
class Exploring:
    """That a query explores.

    Attributes:
        slots: positions at the end of its answer, at most.
        entropy: what its draws come from.
    """

    slots: int
    entropy: int


@dataclass(frozen=True, slots=True)
class Served:
    """How a collection's settings have a query served, see ``services.serving``.

    Attributes:
        query_id: the query's own; what it is given by chance follows from it.
        collection: where to look, as it was when its settings were read.
        arm: of the experiment that it was given; None for none.
        shadow: whether the collection serves without memory.
        exploring: None if the query does not explore.
    """

    query_id: UUID
    collection: Collection
    arm: str | None = None
    shadow: bool = False
    exploring: Exploring | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One question.

    Attributes:
        text: the question.
        collection: where to look.
        top_k: passages wanted.
        max_hops: propagation rounds at most; None for the profile's own.
        memory: whether learned state is read.
        profile: published constants, or ours.
        strategy: walk the graph, or rank passages by their keys alone: dense, lexical, or both fused.
        sufficiency: what may end the hops early; None for the profile's own.
        metadata: only passages whose metadata contain this.
        time_constraint: None to look for one in the question, "" for none, else the phrase itself.
        include: what the answer carries besides passages and their supporting sentences.
        ungated: for ablations: what is learned counts in full, however uncertain it is.
        expansions: widen what passage keys are compared with; all else goes by the question as it was asked.
        says_arm: whether memory, profile and strategy are the caller's word; else an experiment may choose them.
        unit: whose question it is: one unit stays in one arm.
        served: what the collection's settings make of it; None where they have no say.
    """

    text: str
    collection: str
    top_k: int = 5
    max_hops: int | None = None
    memory: Memory = "read"
    profile: ProfileName = "default"
    strategy: Strategy = "graph"
    sufficiency: Sufficiency | None = None
    metadata: Mapping[str, Any] | None = None
    time_constraint: str | None = None
    include: frozenset[Include] = field(default_factory=frozenset)
    ungated: bool = False
    expansions: Sequence[Expansion] = ()
    says_arm: bool = True
    unit: str | None = None
    served: Served | None = None


@dataclass(frozen=True, slots=True)
class SentenceAnswer:
    """A sentence of an answered passage; ``score`` is None for one that no hop selected."""

    sentence_id: int
    position: int
    text: str
    score: float | None
    hops: list[int]


@dataclass(frozen=True, slots=True)
class PassageAnswer:
    """A ranked passage with the sentences that speak for it; ``explored``: it is there by chance."""

    passage_id: str
    title: str | None
    text: str
    metadata: dict[str, Any]
    score: float
    sentences: list[SentenceAnswer]
    explored: bool = False


@dataclass(frozen=True, slots=True)
class EntityAnswer:
    """A mention of the question and the entity it was aligned to (GAM-RAG, Eq. 3)."""

    mention: str
    entity_id: int
    name: str
    similarity: float


@dataclass(frozen=True, slots=True)
class RecallTrace:
    """A sentence that a past question's verdict brought in."""

    sentence_id: int
    past_question: str
    similarity: float
    support: float
    perplexity: float
    prior: float


@dataclass(frozen=True, slots=True)
class Cause:
    """A verdict that counts, and the question that it was on."""

    event_id: int
    judge: str
    question: str
    applied_at: datetime


@dataclass(frozen=True, slots=True)
class SentenceInfluence(Cause):
    """What one verdict did to a selected sentence: each number as it is, less what it were without the verdict.

    Attributes:
        score: of the sentence in its hop, by what the verdict did to the memories of all that the hop reached.
        recall_prior: of the sentence, by what the verdict did to past questions' supports.
    """

    score: float
    recall_prior: float


@dataclass(frozen=True, slots=True)
class SentenceTrace:
    """Why a hop selected a sentence: every factor of its score (Eqs. 4-6), and the verdicts behind them.

    ``influences`` are the strongest; ``influences_cut`` says that there may be more.
    """

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
    recall_prior: float
    influences: list[SentenceInfluence] = field(default_factory=list)
    influences_cut: bool = False


@dataclass(frozen=True, slots=True)
class HopTrace:
    """One propagation round."""

    hop: int
    entities: dict[str, float]
    candidates: int
    sentences: list[SentenceTrace]
    coverage: float | None


@dataclass(frozen=True, slots=True)
class PassageInfluence(Cause):
    """What one verdict did to a passage's score: as it is, less what it were without the verdict.

    What leads from hop to hop is left as it was. Evolved keys are told apart: see ``KeyTrace``.

    Attributes:
        score: by all of the following together, which need not be their sum.
        memory: by the memories of sentences.
        recall: by the supports of past questions.
        weights: by the ranking weights.
    """

    score: float
    memory: float
    recall: float
    weights: float


@dataclass(frozen=True, slots=True)
class KeyCause(Cause):
    """A verdict that brought a unit of a key; its credit is gain times weight (ERM, Eqs. 5-7)."""

    gain: float
    weight: float


@dataclass(frozen=True, slots=True)
class KeyUnitTrace:
    """A unit of an evolved key.

    Attributes:
        share: in (0, 1], of what the key adds to its base.
        events: the verdicts with the highest credit behind it, of ``event_count``.
    """

    unit_id: int
    method: str
    text: str
    share: float
    events: list[KeyCause]
    event_count: int


@dataclass(frozen=True, slots=True)
class KeyTrace:
    """An evolved key: how near it and its base key are to the question, and what it is composed of."""

    similarity: float
    base_similarity: float
    units: list[KeyUnitTrace]


@dataclass(frozen=True, slots=True)
class PassageTrace:
    """What memory did to a returned passage.

    Attributes:
        rank_without_memory: from 1; None where it would not have been among the candidates.
        recall: what recalled sentences add to the score.
        weights: what verdicts changed of the score by the ranking weights.
        weight_events: verdicts in the ranking weights.
        key: None where the passage was found by its base key.
        influences: the strongest; ``influences_cut`` says that there may be more.
    """

    passage_id: str
    rank: int
    rank_without_memory: int | None
    score: float
    recall: float
    weights: float
    weight_events: int
    key: KeyTrace | None
    influences: list[PassageInfluence]
    influences_cut: bool


@dataclass(frozen=True, slots=True)
class Trace:
    """How an answer came about; ``passages`` is None where the query did not ask for a trace."""

    time_constraint: str | None
    entities: list[EntityAnswer]
    recalled: list[RecallTrace]
    hops: list[HopTrace]
    passages: list[PassageTrace] | None = None


@dataclass(frozen=True, slots=True)
class Timings:
    """Where the time went, in milliseconds."""

    analyse_ms: float
    embed_ms: float
    search_ms: float
    total_ms: float


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query is answered."""

    query_id: UUID
    collection: str
    query: str
    memory: Memory
    profile: ProfileName
    strategy: Strategy
    expanded: bool
    sufficiency: Sufficiency
    hops: int
    stop_reason: StopReason
    passages: list[PassageAnswer]
    timings: Timings
    arm: str | None = None
    shadow: bool = False
    entities: list[EntityAnswer] | None = None
    trace: Trace | None = None
