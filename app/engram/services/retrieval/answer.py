"""Answer of a query; an episode stores it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from engram.core.ranking.profiles import ProfileName
from engram.services.retrieval.answer_trace import EntityAnswer, Trace
from engram.services.retrieval.fallbacks import Fallback
from engram.services.retrieval.graph_walk import StopReason, Walk
from engram.services.retrieval.passage_source import PassageSource
from engram.services.retrieval.query import HopStopRule, Memory, Strategy
from engram.services.retrieval.withholding_level import WithholdingLevel


@dataclass(frozen=True, slots=True)
class SentenceAnswer:
    """A sentence of an answered passage.

    ``score`` is None for one that no hop selected. ``recall``: probability, by what verdicts said of past
    questions, that it is evidence; 0 without such verdicts.
    """

    sentence_id: int
    position: int
    text: str
    score: float | None
    hops: list[int]
    recall: float = 0.0


@dataclass(frozen=True, slots=True)
class DuplicateAnswer:
    """A passage that is left out, since it has nearly the text of a better one."""

    passage_id: str
    title: str | None
    metadata: dict[str, Any]
    source: PassageSource


@dataclass(frozen=True, slots=True)
class PassageAnswer:
    """A ranked passage with the sentences that speak for it.

    ``explored``: it is there by chance. ``duplicates``: passages with nearly its text, which it stands for.
    ``similarity``: cosine of its key and the question; None where the ranking does not go by it.
    """

    passage_id: str
    title: str | None
    text: str
    language: str
    metadata: dict[str, Any]
    score: float
    source: PassageSource
    sentences: list[SentenceAnswer]
    explored: bool = False
    duplicates: list[DuplicateAnswer] = field(default_factory=list)
    similarity: float | None = None


@dataclass(frozen=True, slots=True)
class Timings:
    """Durations by stage, in milliseconds."""

    analyse_ms: float
    embed_ms: float
    search_ms: float
    total_ms: float


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of a query.

    ``sufficiency`` is the probability that the first five passages hold all the evidence; None where features do
    not rank. ``insufficient`` ones show nothing, because the query wanted a higher one. ``sufficiency_level``
    is what it had to reach if the query left that to Engram. ``rest`` is where its walk
    would have gone on, for another question to resume; None where nothing was walked. ``alone``: features alone
    chose what is shown: neither what verdicts recall, nor expansions, nor chance had a say.
    ``collapse_duplicates``: whether duplicates of better passages are left out.
    ``trace_id``: the trace that its query belongs to, as the caller named it.
    """

    query_id: UUID
    collection: str
    query: str
    memory: Memory
    profile: ProfileName
    strategy: Strategy
    expanded: bool
    stop_rule: HopStopRule
    hops: int
    stop_reason: StopReason
    passages: list[PassageAnswer]
    timings: Timings
    arm: str | None = None
    shadow: bool = False
    sufficiency: float | None = None
    insufficient: bool = False
    sufficiency_level: WithholdingLevel | None = None
    entities: list[EntityAnswer] | None = None
    trace: Trace | None = None
    warnings: Sequence[Fallback] = ()
    rest: Walk | None = None
    alone: bool = False
    collapse_duplicates: bool = False
    trace_id: str | None = None
