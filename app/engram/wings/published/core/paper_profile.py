"""Profile ``paper``: the published constants (docs/paper.md: how far), and the published ranking of passages."""

import math
from collections.abc import Mapping, Sequence

from engram.core.ranking.profiles import Policy, Profile
from engram.core.ranking.propagation import Floats, Ids, ReachedSentences, select_strongest

PAPER = Profile(
    name="paper",
    max_hops=3,
    sentences_per_hop=3,
    entities_per_hop=5,
    rare_first=False,
    ranked_sentences=0,
    ranked_passages=0,
    policy=Policy(),
    recalls=False,
    collapses=False,
)
PRIOR_WEIGHT = 0.01
"""α, weight of passage-question similarity."""


def score_passages(
    similarities: Mapping[int, float], hops: Sequence[tuple[ReachedSentences, Floats]]
) -> dict[int, float]:
    """Score passages: score(p) = α sim(p, Q) + Σ_t log(1 + bonus_t(p)) / t (GAM-RAG, Eq. 8).

    The logarithm and the 1/t discount keep any single hop from dominating.

    Args:
        similarities: passage -> cosine with the question; the passages to score.
        hops: the sentences that each hop reached, and their scores, (n,), none below 0.
    """
    scores = {passage: PRIOR_WEIGHT * similarity for passage, similarity in similarities.items()}
    for hop, (reached, sentence_scores) in enumerate(hops, start=1):
        chosen = select_strongest(sentence_scores, reached.sentence_ids, PAPER.sentences_per_hop)
        for passage, bonus in compute_bonuses(sentence_scores[chosen], reached.passage_ids[chosen]).items():
            scores[passage] = scores.get(passage, 0.0) + math.log1p(bonus) / hop
    return scores


def compute_bonuses(scores: Floats, passage_ids: Ids) -> dict[int, float]:
    """Each passage's summed score of activated sentences (Eq. 7)."""
    bonuses: dict[int, float] = {}
    for passage, score in zip(passage_ids.tolist(), scores.tolist(), strict=True):
        bonuses[passage] = bonuses.get(passage, 0.0) + score
    return bonuses
