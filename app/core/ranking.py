"""From sentence evidence to a passage ranking (GAM-RAG, Eq. 8)."""

import math
from collections.abc import Mapping, Sequence


def passage_scores(
    similarities: Mapping[int, float], bonuses: Sequence[Mapping[int, float]], prior_weight: float
) -> dict[int, float]:
    """score(p) = α sim(p, Q) + Σ_t log(1 + bonus_t(p)) / t (Eq. 8).

    The logarithm and the 1/t discount keep any single hop from dominating.

    Args:
        similarities: passage -> cosine with the question; the passages to score.
        bonuses: per hop, passage -> summed score of its activated sentences (Eq. 7), above -1.
        prior_weight: α.

    Raises:
        ValueError: a bonus is -1 or less.
    """
    scores = {passage: prior_weight * similarity for passage, similarity in similarities.items()}
    for hop, bonus in enumerate(bonuses, start=1):
        for passage, value in bonus.items():
            if value <= -1:
                raise ValueError("a bonus must be above -1")
            scores[passage] = scores.get(passage, 0.0) + math.log1p(value) / hop
    return scores


def best(scores: Mapping[int, float], limit: int) -> list[tuple[int, float]]:
    """The ``limit`` highest scores, best first; equal scores in id order."""
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
