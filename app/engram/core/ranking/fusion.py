"""Rankings by different measures made one: reciprocal-rank fusion."""

from collections.abc import Hashable, Sequence
from typing import TypeVar

ItemT = TypeVar("ItemT", bound=Hashable)

RRF_CONSTANT = 60
"""k: how little the first ranks stand out from those that follow (Cormack, Clarke and Buettcher, 2009)."""
DEPTH = 100
"""How deep each ranking is read."""


def reciprocal_rank_fusion(rankings: Sequence[Sequence[ItemT]]) -> dict[ItemT, float]:
    """Σ 1 / (k + rank) over the rankings that hold an item (Cormack, Clarke and Buettcher, SIGIR 2009).

    Only ranks count, so measures of different scale need no calibration.

    Args:
        rankings: each best first and without repetitions; its first item has rank 1.

    Returns:
        item -> score > 0, in no order.
    """
    scores: dict[ItemT, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, start=1):
            scores[item] = scores.get(item, 0.0) + 1.0 / (RRF_CONSTANT + rank)
    return scores
