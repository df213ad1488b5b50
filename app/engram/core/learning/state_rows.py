"""States in columns, as a batch reads, moves and writes them: thousands of numbers, and no object for each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.core.learning.caps import GainBudget, TextStatements
from engram.core.learning.kalman import Floats
from engram.core.learning.states import Support

Ids = NDArray[np.int64]
RemainingShares = Mapping[str, float]
"""Judge -> the share of the distance that it left open, see ``caps.GainBudget``."""
NO_SHARES: RemainingShares = {}
_SUPPORT_ARRAYS = (
    "question_ids",
    "sentence_ids",
    "supports",
    "perplexities",
    "acceptance",
    "update_counts",
    "complete",
    "answered",
    "sufficiency",
)
_SUPPORT_LISTS = ("days", "remaining_shares", "statements")


@dataclass(frozen=True, slots=True)
class SupportRows:
    """n rows of ``Support``; arrays are (n,). ``days`` and ``remaining_shares``: ``GainBudget`` of each."""

    question_ids: Ids
    sentence_ids: Ids
    supports: Floats
    perplexities: Floats
    acceptance: Floats
    update_counts: Ids
    complete: NDArray[np.bool_]
    days: Sequence[str]
    remaining_shares: Sequence[RemainingShares]
    statements: Sequence[TextStatements]
    answered: Floats
    sufficiency: Floats

    @classmethod
    def from_rows(cls, rows: Sequence[Support]) -> "SupportRows":
        """Convert states to columns."""
        return cls(
            question_ids=np.array([row.question_id for row in rows], dtype=np.int64),
            sentence_ids=np.array([row.sentence_id for row in rows], dtype=np.int64),
            supports=np.array([row.support for row in rows], dtype=np.float64),
            perplexities=np.array([row.perplexity for row in rows], dtype=np.float64),
            acceptance=np.array([row.acceptance for row in rows], dtype=np.float64),
            update_counts=np.array([row.update_count for row in rows], dtype=np.int64),
            complete=np.array([row.complete for row in rows], dtype=np.bool_),
            days=[row.gain_budget.day for row in rows],
            remaining_shares=[dict(row.gain_budget.remaining_shares) for row in rows],
            statements=[row.statements for row in rows],
            answered=np.array([row.answered for row in rows], dtype=np.float64),
            sufficiency=np.array([row.sufficiency for row in rows], dtype=np.float64),
        )

    @classmethod
    def build_initial(cls, keys: Sequence[tuple[int, int]]) -> "SupportRows":
        """Initial supports of these (question, sentence) keys, before any verdict; see ``Support``."""
        count = len(keys)
        ids = np.array(keys, dtype=np.int64).reshape(-1, 2)
        begun = Support(0, 0)
        return cls(
            question_ids=ids[:, 0],
            sentence_ids=ids[:, 1],
            supports=np.full(count, begun.support),
            perplexities=np.full(count, begun.perplexity),
            acceptance=np.full(count, begun.acceptance),
            update_counts=np.full(count, begun.update_count, dtype=np.int64),
            complete=np.full(count, begun.complete, dtype=np.bool_),
            days=[begun.gain_budget.day] * count,
            remaining_shares=[NO_SHARES] * count,
            statements=[begun.statements] * count,
            answered=np.full(count, begun.answered),
            sufficiency=np.full(count, begun.sufficiency),
        )

    def merge(self, other: "SupportRows") -> "SupportRows":
        """Concatenate both, sorted by (question, sentence)."""
        arrays = {name: np.append(getattr(self, name), getattr(other, name)) for name in _SUPPORT_ARRAYS}
        lists = {name: [*getattr(self, name), *getattr(other, name)] for name in _SUPPORT_LISTS}
        order = np.lexsort((arrays["sentence_ids"], arrays["question_ids"]))
        columns: dict[str, Any] = {name: values[order] for name, values in arrays.items()}
        columns |= {name: [values[place] for place in order.tolist()] for name, values in lists.items()}
        return SupportRows(**columns)

    def __len__(self) -> int:
        return len(self.sentence_ids)

    def __iter__(self) -> Iterator[Support]:
        return map(
            Support,
            self.question_ids.tolist(),
            self.sentence_ids.tolist(),
            self.supports.tolist(),
            self.perplexities.tolist(),
            self.acceptance.tolist(),
            self.update_counts.tolist(),
            self.complete.tolist(),
            map(make_gain_budget, self.days, self.remaining_shares),
            self.statements,
            self.answered.tolist(),
            self.sufficiency.tolist(),
        )


def make_gain_budget(day: str, stored: RemainingShares) -> GainBudget:
    return GainBudget(day, tuple(sorted(stored.items())))
