"""Question memory: what supported past questions with the same need is evidence for this one.

A recalled passage competes with the base ranking instead of going in front of it. Both say with what probability a
passage is evidence, and it is evidence if either is right:

    p = 1 - (1 - p_base) (1 - p_recall)       p_recall = P(same need) · reliability of the support

So a weak recall cannot overtake a passage of which the base ranking is sure.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.complementarity import find_reference_score

Floats = NDArray[np.float64]

SUPPORT_EXPONENT = 3.0
"""Exponent: a support is wrong with probability (1 - net support)^3. One full verdict of a trusted judge leaves a
net support of 2/3, so it is right 26 times of 27."""
LEAST_RECALL = 0.1
"""A recall of less probability is left out: what is known of the two questions speaks against the same need."""
EVEN_ODDS = 0.5
"""A recalled sentence joins the first hop, and leads on from it, if it is more likely evidence than not."""
MOST_CERTAIN = 1.0 - 1e-9


def compute_reliability(net: float) -> float:
    """Probability that a sentence is evidence of the question that verdicts supported it for, in [0, 1].

    Args:
        net: net support, see ``net_support``, in [0, 1].
    """
    return float(1.0 - (1.0 - net) ** SUPPORT_EXPONENT)


def compute_recall_probabilities(supports: Iterable[tuple[int, float, float]]) -> dict[int, float]:
    """Sentence -> probability in [0, 1] that it is evidence, by what supported past questions.

    The maximum over past questions, so that many middling neighbours do not outweigh the question itself.

    Args:
        supports: (sentence, probability that the past question has the same need, net support), both in [0, 1].
    """
    probabilities: dict[int, float] = {}
    for sentence, same_need, net in supports:
        probability = same_need * compute_reliability(net)
        if probability >= LEAST_RECALL and probability > probabilities.get(sentence, 0.0):
            probabilities[sentence] = probability
    return probabilities


def select_likely(probabilities: Mapping[int, float]) -> dict[int, float]:
    """Select the sentences that are more likely evidence than not."""
    return {sentence: one for sentence, one in probabilities.items() if one >= EVEN_ODDS}


def collect_passage_probabilities(
    probabilities: Mapping[int, float], holders: Mapping[int, int], stand_in_by_passage: Mapping[int, int]
) -> dict[int, float]:
    """Passage -> the highest probability of its sentences; a duplicate's counts for the passage that stands for it.

    Args:
        probabilities: of recall, by sentence.
        holders: sentence -> its passage; others are left out.
        stand_in_by_passage: left-out passage -> the passage that stands for it.
    """
    best: dict[int, float] = {}
    for sentence, probability in probabilities.items():
        if sentence in holders:
            passage = stand_in_by_passage.get(holders[sentence], holders[sentence])
            best[passage] = max(probability, best.get(passage, 0.0))
    return best


def net_support(support: float, perplexity: float) -> float:
    """A support less what rejections say against it, in [0, 1].

    A rejection moves a support towards 0, which is also where nobody has judged yet. Counted as -1 instead, the
    same verdicts give s = (1 - π)(2 · mean - 1) in place of (1 - π) · mean: the same where all supported, and
    nothing where as many rejected, so that one wrong verdict among several recalls nothing.
    """
    return min(1.0, max(0.0, 2.0 * support - (1.0 - perplexity)))


def compute_recall_lifts(scores: Floats, probabilities: Floats) -> Floats:
    """Increase of each passage's score by recall, (..., n), 0 where its probability is 0.

    Scores are log odds relative to the fifth passage, as in ``complementarity.compute_evidence_probabilities``.

    Args:
        scores: of all candidates before recall, (..., n), n > 0.
        probabilities: of each by recall, in [0, 1], (n,).
    """
    fifth = find_reference_score(scores)[..., None]
    denied = np.log1p(-np.minimum(probabilities, MOST_CERTAIN)) - np.logaddexp(0.0, scores - fifth)
    lifted = fifth + np.log(-np.expm1(denied)) - denied
    return np.where(probabilities > 0, np.maximum(lifted - scores, 0.0), 0.0)


def compute_ungated_support(support: float, perplexity: float) -> float:
    """Divide the certainty 1 - π out of a support: the share of verdicts that supported. For the evaluation only.

    A support starts at 0 with perplexity 1, and each verdict y moves it by the gain, s' = (1 - K) s + K y, which
    shrinks the perplexity by 1 - K as well. So s = (1 - π) · (the mean verdict), but for the process noise.
    """
    return min(1.0, support / (1.0 - perplexity)) if perplexity < 1 else support
