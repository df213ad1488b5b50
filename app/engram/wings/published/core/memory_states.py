"""Memories of sentences (GAM-RAG, Eq. 2), one by one and in columns."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from engram.core.learning.caps import UNTOUCHED, GainBudget, Ids
from engram.core.learning.kalman import Floats
from engram.core.learning.state_rows import RemainingShares, make_gain_budget
from engram.core.learning.states import CHANNELS, Vector


@dataclass(frozen=True, slots=True)
class SentenceMemory:
    """One channel of a sentence's memory: unit vector (d,), perplexity in [0, 1].

    As it begins, at perplexity 1, its vector is the sentence's embedding, or its time expression's.
    """

    sentence_id: int
    channel: str
    vector: Vector
    perplexity: float = 1.0
    update_count: int = 0
    gain_budget: GainBudget = UNTOUCHED


@dataclass(frozen=True, slots=True)
class MemoryRows:
    """n rows of ``SentenceMemory``; arrays are (n,), vectors (n, d).

    Attributes:
        channels: places in ``CHANNELS``.
        days, remaining_shares: ``GainBudget`` of each.
    """

    sentence_ids: Ids
    channels: Ids
    vectors: Vector
    perplexities: Floats
    update_counts: Ids
    days: Sequence[str]
    remaining_shares: Sequence[RemainingShares]

    @classmethod
    def from_rows(cls, rows: Sequence[SentenceMemory]) -> "MemoryRows":
        """Convert states to columns."""
        return cls(
            sentence_ids=np.array([row.sentence_id for row in rows], dtype=np.int64),
            channels=np.array([CHANNELS.index(row.channel) for row in rows], dtype=np.int64),
            vectors=np.stack([row.vector for row in rows]) if rows else np.zeros((0, 0), dtype=np.float32),
            perplexities=np.array([row.perplexity for row in rows], dtype=np.float64),
            update_counts=np.array([row.update_count for row in rows], dtype=np.int64),
            days=[row.gain_budget.day for row in rows],
            remaining_shares=[dict(row.gain_budget.remaining_shares) for row in rows],
        )

    def __len__(self) -> int:
        return len(self.sentence_ids)

    def __iter__(self) -> Iterator[SentenceMemory]:
        return map(
            SentenceMemory,
            self.sentence_ids.tolist(),
            (CHANNELS[channel] for channel in self.channels.tolist()),
            self.vectors,
            self.perplexities.tolist(),
            self.update_counts.tolist(),
            map(make_gain_budget, self.days, self.remaining_shares),
        )
