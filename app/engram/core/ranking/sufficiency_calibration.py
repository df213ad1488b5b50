"""Sufficiency as the answers of a collection state it: even odds lie where its own questions part (ours).

Log odds of sufficiency lie elsewhere in each collection: among few passages the best are far ahead, whether they
answer or not. Questions made from the collection's passages are asked with their passage and without it, which
needs no label (``withholding_level``). Halfway between the medians of the two, its midpoint, an answer is as
probably sufficient as not, if as many questions are without an answer as have one: two groups alike in spread part
there. So the stated log odds are the model's less the midpoint. No order changes.

Made questions score higher beside their passage than those of people, but half of that is little: over seventeen
pairs of a collection and an encoder, what is stated of people's questions is off by .04 on average. Encyclopedic
collections have no midpoint: people's questions go through several passages there, and made ones ask for one.
"""

import numpy as np

from engram.core.ranking.weight_beliefs import Floats, sigmoid


def compute_midpoint(present: Floats, absent: Floats) -> float:
    """Log odds of sufficiency at which a collection states even odds.

    Args:
        present, absent: log odds of the answers to made questions, with and without their passage, (n,), n > 0.
    """
    return float(np.median(present) + np.median(absent)) / 2.0


def calibrate_weights(weights: Floats, midpoint: float) -> Floats:
    """Weights of the features that give the stated log odds, (k,); the first feature is 1."""
    calibrated = weights.copy()
    calibrated[0] -= midpoint
    return calibrated


def calibrate(probability: float, midpoint: float) -> float:
    """The stated probability of a model's, both in (0, 1)."""
    return float(sigmoid(np.log(probability / (1.0 - probability)) - midpoint))
