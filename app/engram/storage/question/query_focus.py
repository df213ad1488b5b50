"""Focus of a query, and bounds on what one statement may read for it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.profiles import DEFAULT, Policy
from engram.core.text.temporal import TimeExpression
from engram.storage.column_parameters import integers
from engram.storage.corpus.collections import Collection
from engram.storage.question.metadata_filter import PassageCondition

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class GraphLimits:
    """Bounds on what one statement reads; ``exact``: search exactly also where there is a vector index."""

    hub_limit: int
    candidate_limit: int
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Focus:
    """Collection, vectors and filters of a query, the same for all its statements.

    Attributes:
        collection: the corpus.
        vector: the question's embedding, (d,).
        limits: bounds on what one statement reads.
        time_vector: its time constraint's embedding, (d,), or None for a question without one.
        use_memory: whether learned state may be read.
        policy: how far memories count.
        filter: only passages that meet this; None for all.
        among: only these passages; None for all.
        without: none of these passages.
        by_readers: search exactly what the caller's sets of readers lead to, index or none.
        intervals: the intervals its time constraint names; none for a question that names none.
        key_vector: what passage keys are compared with, (d,), where the question was expanded or a taught encoder
            embedded it; None for ``vector``.
            What it says of sentences, memories and past questions remains the question's own.
    """

    collection: Collection
    vector: Vector
    limits: GraphLimits = field(kw_only=True)
    time_vector: Vector | None = None
    use_memory: bool = False
    policy: Policy = DEFAULT.policy
    filter: PassageCondition | None = None
    among: Sequence[int] | None = None
    without: Sequence[int] = ()
    by_readers: bool = False
    intervals: tuple[TimeExpression, ...] = ()
    key_vector: Vector | None = None

    @property
    def evolved(self) -> bool:
        """Whether passages have evolved keys that may be read."""
        return self.use_memory and self.policy.evolved_keys and self.collection.key_generation > 0

    @property
    def is_narrowed(self) -> bool:
        """Whether only some of the collection's passages may be found."""
        return self.filter is not None or self.among is not None or bool(self.without)

    @property
    def passage_condition(self) -> str:
        """SQL that is true of the rows ``passage p`` that may be found."""
        parts = [] if self.filter is None else [f"({self.filter.sql})"]
        if self.among is not None:
            parts.append("p.id = ANY(%(among)s::bigint[])")
        if self.without:
            parts.append("p.id <> ALL(%(without)s::bigint[])")
        return " AND ".join(parts) or "true"

    @property
    def condition_values(self) -> dict[str, Any]:
        """The parameters of ``passage_condition``."""
        return {
            "among": integers(self.among or ()),
            "without": integers(self.without),
            **({} if self.filter is None else self.filter.values),
        }

    def parameters(self, **more: Any) -> dict[str, Any]:
        """The statement parameters that every statement of this query shares."""
        return {
            "collection": self.collection.id,
            "q": self.vector,
            "key": self.vector if self.key_vector is None else self.key_vector,
            **self.condition_values,
            **more,
        }
