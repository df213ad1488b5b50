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
class Reached:
    """The best that propagation reached of a passage, selected or not.

    Attributes:
        similarity: largest cosine of one of its sentences with the question.
        reciprocal_rank: 1 / rank of its best sentence among a hop's candidates, the largest of any hop.
    """

    similarity: float
    reciprocal_rank: float


@dataclass(frozen=True, slots=True)
class FeatureWeights:
    """What each feature of a passage adds to its score.

    The evidence of Eq. 8 ranks the few passages of the selected sentences and leaves the rest to a weak prior.
    These features rank all that propagation reached, so evidence that came in fourth is not lost. The shipped
    weights maximise recall over the development questions of four multi-hop sets; weights fitted without the
    set they are tried on transfer, because they say how far kinds of evidence can be trusted, not what is true
    in one corpus.

    Attributes:
        evidence: Σ_t log(1 + bonus_t) / t (Eq. 8 without its prior).
        similarity: cosine of passage and question.
        titled: 1 if the passage's title is an entity of the question.
        sentence: largest cosine of a reached sentence with the question.
        rank: its best sentence's reciprocal rank in a hop.
        titled_sentence: product of ``titled`` and ``sentence``.
    """

    evidence: float = 1.0
    similarity: float = 0.012
    titled: float = 0.01
    sentence: float = 0.004
    rank: float = 0.022
    titled_sentence: float = 0.06


def weighted_scores(
    similarities: Mapping[int, float],
    bonuses: Sequence[Mapping[int, float]],
    reached: Mapping[int, Reached],
    titled: Collection[int],
    weights: FeatureWeights,
) -> dict[int, float]:
    """Passage -> weighted sum of its features.

    Args:
        similarities: passage -> cosine with the question; the passages to score.
        bonuses: as in ``passage_scores``.
        reached: passage -> what propagation reached of it.
        titled: passages whose title is an entity of the question.
        weights: what each feature adds.
    """
    evidence = passage_scores(dict.fromkeys(similarities, 0.0), bonuses, 0.0)
    nothing = Reached(0.0, 0.0)
    scores = {}
    for passage, similarity in similarities.items():
        best_of = reached.get(passage, nothing)
        is_titled = float(passage in titled)
        scores[passage] = (
            weights.evidence * evidence[passage]
            + weights.similarity * similarity
            + weights.titled * is_titled
            + weights.sentence * best_of.similarity
            + weights.rank * best_of.reciprocal_rank
            + weights.titled_sentence * is_titled * best_of.similarity
        )
    return scores


def best(scores: Mapping[int, float], limit: int) -> list[tuple[int, float]]:
    """The ``limit`` highest scores, best first; equal scores in id order."""
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
