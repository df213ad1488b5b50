"""Query and its options."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

from engram.core.filter.logged_verdict import Expansion
from engram.core.ranking.profiles import ProfileName
from engram.services.auth.scope import Scope
from engram.services.retrieval.graph_walk import Walk

Memory = Literal["off", "read"]
Strategy = Literal["graph", "dense", "lexical", "hybrid"]
HopStopRule = Literal["none", "coverage", "learned", "llm"]
Include = Literal["sentences", "entities", "trace"]


@dataclass(frozen=True, slots=True)
class GapQuery:
    """A question and what is known of it: what it asks beside each of these sentences is a gap vector."""

    question: str
    sentences: Sequence[str]


@dataclass(frozen=True, slots=True)
class ExplorationSettings:
    """Settings of a query that explores.

    Attributes:
        slots: positions at the end of its answer, at most.
        entropy: what its draws come from.
        depth: candidates below the cut that a draw is made from.
    """

    slots: int
    entropy: int
    depth: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One question: what the caller asked, and what the settings of its collection make of that.

    Attributes:
        text: the question.
        scope: where to look, and who asks.
        top_k: passages wanted.
        max_hops: hops at most; None for the profile's own.
        memory: whether learned state is read.
        profile: the published constants, where there are any, or ours.
        strategy: walk the graph, or rank passages by their keys alone: dense, lexical, or both fused.
        stop_rule: what may end the hops early; None for the profile's own.
        min_sufficiency: an answer that is enough with a lower probability, in [0, 1], has no passages; "auto": see
            ``withholding_level``.
        filter: only passages that it lets through, see ``core.text.filters``.
        among: only these passages, by their ids. This does not go with ``lacking``.
        time_constraint: None to look for one in the question, "" for none, else the phrase itself.
        include: what the answer carries besides passages and their supporting sentences.
        expansions: widen what passage keys are compared with; all else goes by the question as it was asked.
        caller_chose_arm: whether the caller chose memory, profile and strategy; else a wing's rule may choose them.
        arm: of an experiment that such a rule gave to it; None for none.
        shadow: whether the collection serves without memory.
        exploring: None if the query does not explore.
        id: of the answer; what the query is given by chance follows from it. None for a new one.
        unit: whose question it is: one unit stays in one arm.
        pool: sentences that the first hop reaches whatever it starts from: what a session has found so far.
        lacking: whose gaps passages are looked for in besides.
        walk: that this one resumes: the first hop starts from where it would have gone on as well.
        collapse_duplicates: whether passages with nearly the text of a better one are left out; None for the
            profile's default.
        trace_id: the caller's id of the trace or message that the question belongs to; scores find it by that.
        is_part: whether a session asks it as a sub-question; a judge of answers leaves it out.
    """

    text: str
    scope: Scope
    top_k: int = 5
    max_hops: int | None = None
    memory: Memory = "read"
    profile: ProfileName = "default"
    strategy: Strategy = "graph"
    stop_rule: HopStopRule | None = None
    min_sufficiency: float | Literal["auto"] | None = None
    filter: Mapping[str, Any] | None = None
    among: Sequence[int] | None = None
    time_constraint: str | None = None
    include: frozenset[Include] = field(default_factory=frozenset)
    expansions: Sequence[Expansion] = ()
    caller_chose_arm: bool = True
    arm: str | None = None
    shadow: bool = False
    exploring: ExplorationSettings | None = None
    id: UUID | None = None
    unit: str | None = None
    pool: Sequence[int] = ()
    lacking: GapQuery | None = None
    walk: Walk | None = None
    collapse_duplicates: bool | None = None
    trace_id: str | None = None
    is_part: bool = False

    def __post_init__(self) -> None:
        if self.lacking is not None and self.among is not None:
            raise ValueError("gaps are looked for in the whole collection")
