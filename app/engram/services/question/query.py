"""Step 1: what is asked, and how."""

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, TypeVar
from uuid import UUID

from engram.core.learning.logged_verdict import Expansion
from engram.core.ranking.profiles import ProfileName
from engram.core.text.identifiers import RANDOM_BYTES, uuid7
from engram.services.auth.scope import Scope

Memory = Literal["off", "read"]
Strategy = Literal["graph", "dense", "lexical", "hybrid"]
HopStopRule = Literal["none", "coverage", "learned", "llm"]
Include = Literal["sentences", "entities", "trace", "context", "sufficiency_level"]
FallbackType = Literal[
    "sufficiency-not-judged",
    "not-reranked",
    "time-by-rules",
    "not-answered",
    "not-restated",
    "not-widened",
    "planned-by-rules",
    "sifted-by-rules",
    "noted-by-rules",
    "not-read",
    "updated-by-rules",
    "question-shortened",
    "parts-not-read",
]

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Fallback:
    """A step that an endpoint failed and that was done without it, or a part of the question that was not read.

    Attributes:
        type: which one; stable.
        detail: how the endpoint failed, or what was left out.
    """

    type: FallbackType
    detail: str


@dataclass(frozen=True, slots=True)
class Frontier:
    """Entities that a hop starts from: entity -> its activation, and its name."""

    activation: Mapping[int, float]
    names: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class SessionPart:
    """Part of a query that a session asks: what it has found so far.

    Attributes:
        pool: sentences that the first hop reaches whatever it starts from.
        is_sub_question: whether the session asks it besides its own question; a judge of answers leaves it out.
    """

    pool: Sequence[int] = ()
    is_sub_question: bool = False


@dataclass(frozen=True, slots=True)
class ExplorationPart:
    """Part of a query that explores.

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
            ``sufficiency.choose_level``.
        filter: only passages that it lets through, see ``core.text.filters``.
        among: only these passages, by their ids.
        without: none of these passages, by their ids.
        time_constraint: None to look for one in the question, "" for none, else the phrase itself.
        include: what the answer carries besides passages and their supporting sentences.
        expansions: widen what passage keys are compared with; all else goes by the question as it was asked.
        caller_chose_arm: whether the caller chose memory, profile and strategy; else a wing's rule may choose them.
        arm: of an experiment that such a rule gave to it; None for none.
        shadow: whether the collection serves without memory.
        id: of the answer; what the query is given by chance follows from it. None for a new one.
        unit: whose question it is: one unit stays in one arm.
        collapse_duplicates: whether passages with nearly the text of a better one are left out; None for the
            profile's default.
        trace_id: the caller's id of the trace or message that the question belongs to; scores find it by that.
        parts: what wings add, one of each type at most: see ``part``.
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
    without: Sequence[int] = ()
    time_constraint: str | None = None
    include: frozenset[Include] = field(default_factory=frozenset)
    expansions: Sequence[Expansion] = ()
    caller_chose_arm: bool = True
    arm: str | None = None
    shadow: bool = False
    id: UUID | None = None
    unit: str | None = None
    collapse_duplicates: bool | None = None
    trace_id: str | None = None
    parts: tuple[object, ...] = ()

    @property
    def depth(self) -> int:
        """Passages that a search by keys must find: those to show, and those to draw from if the query explores."""
        exploration = self.part(ExplorationPart)
        return self.top_k + (0 if exploration is None else exploration.depth)

    def part(self, kind: type[Part]) -> Part | None:
        """Return the part of this type, if a wing has added one."""
        return next((part for part in self.parts if isinstance(part, kind)), None)

    def with_part(self, part: object) -> Self:
        """Return the query with this part in place of one of its type."""
        return replace(self, parts=(*self.without_part(type(part)).parts, part))

    def without_part(self, kind: type[object]) -> Self:
        """Return the query without a part of this type."""
        return replace(self, parts=tuple(part for part in self.parts if not isinstance(part, kind)))


def create_query_id() -> UUID:
    """Create the identifier of a query that begins now."""
    return uuid7(time.time_ns() // 1_000_000, os.urandom(RANDOM_BYTES))
