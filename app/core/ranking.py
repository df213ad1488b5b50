"""From sentence evidence to a passage ranking (GAM-RAG, Eq. 8)."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class FeatureWeights:
    """What each feature of a passage adds to its score.

    The evidence of Eq. 8 ranks the few passages of the selected sentences and leaves the rest to a weak prior.
    These features rank all that propagation reached, so evidence that came in fourth is not lost, and a hop with
    two candidates does not outweigh one with two hundred, as it does where scores are shares of their hop. The
    weights are round on purpose: those fitted without a data set differ little from those fitted with it.

    Attributes:
        similarity: cosine of passage and question.
        titled: 1 if the passage's title is an entity of the question.
        rank: reciprocal rank of its best sentence among the candidates of any hop.
    """

    similarity: float = 1.0
    titled: float = 0.25
    rank: float = 1.0


def weighted_scores(
    similarities: Mapping[int, float],
    reached: Mapping[int, float],
    titled: Collection[int],
    weights: FeatureWeights,
) -> dict[int, float]:
    """Passage -> weighted sum of its features.

    Args:
        similarities: passage -> cosine with the question; the passages to score.
        reached: passage -> reciprocal rank of its best sentence, in (0, 1]; 0 for one that no hop reached.
        titled: passages whose title is an entity of the question.
        weights: what each feature adds.
    """
    return {
        passage: weights.similarity * similarity
        + weights.titled * (passage in titled)
        + weights.rank * reached.get(passage, 0.0)
        for passage, similarity in similarities.items()
    }


def best(scores: Mapping[int, float], limit: int) -> list[tuple[int, float]]:
    """The ``limit`` highest scores, best first; equal scores in id order."""
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
