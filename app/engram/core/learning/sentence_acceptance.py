"""Acceptance of a sentence as evidence of a question, by judges: it counts against rejections (ours).

Some supports are weak lest they recall too much: a thumb under an answer says little of each passage, and who
contradicts another judge counts a tenth. Against rejections both count in full. Where judges differ, the ranking
as it would be without them is the safe one.

    supported:  a <- (1 - K_a) a + K_a      K_a = max(K, min(π / (π + R_a), cap))
    rejected:   a <- (1 - K) a              K: gain of the support's own update, π: perplexity before it

R_a is the noise of a rejection as probable as the support, so that a thumb up weighs as much as a thumb down. Where
every support is a full one that contradicts nobody, the acceptance is the support.
"""

import numpy as np

from engram.core.learning.kalman import Floats, kalman_gain
from engram.core.learning.logged_verdict import NEAREST_SENTENCE_PROBABILITY
from engram.core.learning.ratings import FIRST_PASSAGE_PROBABILITY


def compute_acceptance_noise(noise: Floats, certain: Floats) -> Floats:
    """Compute R_a of supports, (n,).

    A thumb up without citations speaks against a rejection as probably as such a thumb down rejects.

    Args:
        noise: R of each, (n,).
        certain: R of a rejection, and of a support, that its verdict is certain of, (n, 2).
    """
    probabilities = certain[:, 1] / noise
    of_thumbs = probabilities * (NEAREST_SENTENCE_PROBABILITY / FIRST_PASSAGE_PROBABILITY)
    return certain[:, 0] / np.maximum(probabilities, np.minimum(of_thumbs, NEAREST_SENTENCE_PROBABILITY))


def update_acceptance(
    acceptance: Floats, perplexities: Floats, *, targets: Floats, gains: Floats, noise: Floats, caps: Floats
) -> Floats:
    """The acceptances after one verdict each, (n,); row by row, so that a replay comes to the same bits.

    Args:
        acceptance: before it, (n,), in [0, 1].
        perplexities: before it, (n,), in [0, 1].
        targets: 1 supported, 0 rejected, (n,).
        gains: K of the supports' updates, (n,), in [0, 1].
        noise: R_a, (n,), above 0.
        caps: largest gain of one verdict of each one's judge where it contradicts nobody, (n,), in [0, 1].
    """
    full = np.maximum(gains, np.minimum(kalman_gain(perplexities, noise), caps))
    return acceptance + np.where(targets > 0.5, full, gains) * (targets - acceptance)
