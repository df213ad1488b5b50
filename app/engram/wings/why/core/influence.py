"""Influence of single verdicts on a score: the score less that of a state without the verdict.

Leaving one out is exact where the state is a sum or is replayed. It is not additive: of two verdicts that say the
same, each alone makes less difference than both together.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking import sufficiency
from engram.core.ranking.complementarity import CandidatePool
from engram.core.ranking.passage_scores import (
    BASE_FEATURES,
    FEATURE_HOPS,
    PLAIN_FEATURES,
    HopReach,
    add_complementarity,
    passage_features,
)
from engram.core.ranking.propagation import ChannelMemories, ReachedSentences, sentence_scores
from engram.core.ranking.weight_beliefs import WeightBelief, WeightEvidence

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]


def compute_similarity_after(before: float, gain: float, residual: float) -> float:
    """Cosine of memory and question once a verdict has moved the memory along the question (GAM-RAG, Eq. 12).

    Of a unit vector m with m·q = c, the moved one, m + K r q, has length sqrt(1 + 2 K r c + (K r)²).

    Args:
        before: c, in [-1, 1].
        gain, residual: K in [0, 1] and r, of the verdict.
    """
    step = gain * residual
    length = math.sqrt(max(1.0 + 2.0 * step * before + step * step, 0.0))
    return (before + step) / length if length > 0 else 0.0


def replace_memories(
    candidates: ReachedSentences, states: Mapping[tuple[int, str], tuple[float, float]]
) -> ReachedSentences:
    """The candidates with these memories.

    Args:
        states: (sentence, channel) -> perplexity and cosine with the question; those of other sentences are not
            looked at.
    """
    changed = {
        channel: ChannelMemories(memories.perplexity.copy(), memories.similarity.copy())
        for channel, memories in candidates.memories.items()
    }
    for (sentence, channel), (perplexity, similarity) in states.items():
        at = int(np.searchsorted(candidates.sentence_ids, sentence))
        if at < len(candidates) and candidates.sentence_ids[at] == sentence:
            changed[channel].perplexity[at], changed[channel].similarity[at] = perplexity, similarity
    return replace(candidates, memories=changed)


def compute_scores(candidates: ReachedSentences, states: Mapping[tuple[int, str], tuple[float, float]]) -> Floats:
    """Scores of Eq. 6, (n,), as they were with these memories; activations are left as they are."""
    return sentence_scores(replace_memories(candidates, states))


def compute_features(
    features: Floats, passages: Ids, hops: Sequence[HopReach], pool: CandidatePool | None, first: Floats
) -> Floats:
    """Recompute features, (n, k), for changed hop scores.

    Title activations are read from the old matrix. The pool keeps its members; their probabilities change.

    Args:
        features: as ``passage_scores.add_complementarity`` made them.
        passages: whose they are, (n,), in any order.
        hops: as they would have been; ``title_activation`` is not looked at.
        pool: their pool.
        base_weights: of the base features.
    """
    ids = passages.tolist()
    # What titles say does not depend on scores; hops beyond the last that has features of its own share its column.
    title_activations = [
        dict(zip(ids, features[:, _column("titled", hop)].tolist(), strict=True)) for hop in range(len(hops))
    ]
    order = np.argsort(passages)
    sorted_features = passage_features(
        passages[order],
        features[order, : len(PLAIN_FEATURES)],
        [replace(hop, title_activation=title_activations[number]) for number, hop in enumerate(hops)],
    )
    changed = np.empty_like(sorted_features)
    changed[order] = sorted_features
    return add_complementarity(changed, pool, first)


def compute_means_without(
    model: str, prior: WeightBelief, total: WeightEvidence, terms: Sequence[WeightEvidence]
) -> Floats:
    """Return the mean weights, (m, k), after all evidence but one term each; exact, because evidence adds up.

    A term's ``information``, (k,), is a precision-weighted shift from the prior's mean; ``precision`` is (k, k).
    Terms of sufficiency have one number more, see ``sufficiency.build_counted_observation``.
    """
    if not terms:
        return np.zeros((0, len(prior.mean)))
    if model == "sufficiency":
        return np.stack([sufficiency.compute_learned_mean(prior, total - term) for term in terms])
    precision = total.precision - np.stack([term.precision for term in terms])
    information = total.information - np.stack([term.information for term in terms])
    return np.asarray(prior.mean + np.linalg.solve(prior.precision + precision, information[:, :, None])[:, :, 0])


def _column(name: str, hop: int) -> int:
    return BASE_FEATURES.index(f"{name}_{min(hop + 1, FEATURE_HOPS)}")
