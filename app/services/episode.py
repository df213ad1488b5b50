"""What a query asks and what it is answered; the answer is also what an episode remembers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from app.services.feedback import Expansion

Memory = Literal["off", "read"]
ProfileName = Literal["paper", "default"]
Strategy = Literal["graph", "dense", "lexical", "hybrid"]
Sufficiency = Literal["none", "coverage", "llm"]
Include = Literal["sentences", "entities", "trace"]
StopReason = Literal["max_hops", "sufficient", "no_entities", "no_candidates", "no_hops"]


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
    """A ranked passage with the sentences that speak for it."""

    passage_id: str
    title: str | None
    text: str
    metadata: dict[str, Any]
    score: float
    sentences: list[SentenceAnswer]


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
class SentenceTrace:
    """Why a hop selected a sentence: every factor of its score (Eqs. 4-6)."""

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


@dataclass(frozen=True, slots=True)
class HopTrace:
    """One propagation round."""

    hop: int
    entities: dict[str, float]
    candidates: int
    sentences: list[SentenceTrace]
    coverage: float | None


@dataclass(frozen=True, slots=True)
class Trace:
    """How an answer came about."""

    time_constraint: str | None
    entities: list[EntityAnswer]
    recalled: list[RecallTrace]
    hops: list[HopTrace]


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
    entities: list[EntityAnswer] | None = None
    trace: Trace | None = None
