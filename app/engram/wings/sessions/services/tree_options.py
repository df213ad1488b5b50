"""Options of planners."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from engram.context.errors import InvalidRequestError
from engram.wings.sessions.core.tree_search import SearchLimits
from engram.wings.sessions.services.tree_branch import MemoryAblation

Combine = Literal["vote", "synthesis"]
Part = Literal["consolidation", "update", "extractor", "binding"]
"""Parts that a session can do without: of memory management, where the extractor is the two before it together, and
ranking by what binds, which ``pool`` heeds."""
MOST_DOCUMENTS = 200
"""That a caller may give an agent."""


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """Options of the tree search.

    Attributes:
        together: rollouts of a wave that run side by side at most; the endpoint's own limits slow them down.
        seed: of draws between equally promising nodes.
        combine: several conclusions become one by a vote, weighed by ratings, or by the LLM.
        means: parts of memory management that are left in.
    """

    limits: SearchLimits = field(default_factory=SearchLimits)
    together: int = 4
    seed: int = 0
    combine: Combine = "vote"
    means: MemoryAblation = field(default_factory=MemoryAblation)


class PlannerOptions(BaseModel):
    """Options of all planners; those of another planner have no effect."""

    model_config = ConfigDict(strict=True, extra="forbid")

    depth: int = Field(5, ge=1, le=10)
    width: int = Field(3, ge=1, le=5)
    rollouts: int = Field(10, ge=1, le=100)
    exploration: float = Field(1.0, ge=0.0, le=100.0)
    together: int = Field(4, ge=1, le=16)
    seed: int = 0
    combine: Combine = "vote"
    without: list[Part] = Field(default_factory=list)
    documents: list[str] = Field(default_factory=list, max_length=MOST_DOCUMENTS)
    insert_only: bool = False
    graph: str | None = None
    coverage: float = Field(1.0, gt=0.0, le=1.0)


def parse_planner_options(payload: Mapping[str, Any] | None) -> PlannerOptions:
    """A session's options, checked.

    Raises:
        InvalidRequestError: one is unknown or out of its range.
    """
    try:
        return PlannerOptions.model_validate(dict(payload or {}))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(map(str, first["loc"]))
        raise InvalidRequestError(f"options.{name}: {first['msg']}.") from error


def read_options(payload: Mapping[str, Any] | None) -> TreeOptions:
    """Read a session's options.

    Raises:
        InvalidRequestError: one is unknown or out of its range.
    """
    options = parse_planner_options(payload)
    return TreeOptions(
        SearchLimits(options.depth, options.width, options.rollouts, options.exploration),
        options.together,
        options.seed,
        options.combine,
        MemoryAblation(*(not {part, "extractor"} & set(options.without) for part in ("consolidation", "update"))),
    )
