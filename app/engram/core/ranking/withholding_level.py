"""Meaning of the sufficiency of a collection's answers, by questions made from its own passages (ours).

**The level** of ``min_sufficiency`` "auto" is the sufficiency below which an answer is withheld. At most
``WITHHELD_SHARE`` of the right answers should be below it. Two samples of the collection tell where it is, in log
odds of sufficiency:

- masked: answers to questions that are made from passages, with these passages left out of the search. They are
  absent by construction, and score like questions of people that the collection does not answer. Beside their
  passages such questions score higher than those of people, by an amount that differs between collections, since
  they copy words. So only the masked half is used. The level that withholds one right answer of people in ten lies
  at the .16 to .77 quantile of the masked answers, over six pairs of data set and encoder. The quantile
  ``MASKED_SHARE`` withholds .08 of the right answers on average over these, and .18 at most.
- confirmed: answers that judges confirmed. The level is their conformal quantile.

The level is the mean of both, in which n confirmed answers weigh n / (n + ``CONFIRMED_FOR_HALF``).

**The midpoint** is where answers state even odds. Log odds of sufficiency lie elsewhere in each collection: among
few passages the best are far ahead, whether they answer or not. Made questions are asked with their passage and
without it. Halfway between the medians of the two an answer is as probably sufficient as not, if as many questions
are without an answer as have one: two groups alike in spread part there. So the stated log odds are the model's
less the midpoint. No order changes. Made questions score higher beside their passage than those of people, but half
of that is little: over seventeen pairs of a collection and an encoder, what is stated of people's questions is off
by .04 on average. Encyclopedic collections have no midpoint: people's questions go through several passages there,
and made ones ask for one.
"""

import math

import numpy as np

from engram.core.ranking.weight_beliefs import Floats, sigmoid

WITHHELD_SHARE = 0.1
"""Share of the right answers that may be withheld."""
MASKED_SHARE = 0.25
"""Share of the masked answers that lie below the level."""
CONFIRMED_FOR_HALF = 20
"""Confirmed answers that weigh as much as the masked ones."""
LEAST_CONFIRMED = 9
"""Confirmed answers from which on one of ten further ones may be below the lowest."""


def compute_masked_level(masked: Floats) -> float:
    """Level that masked answers give, in log odds.

    Args:
        masked: their log odds of sufficiency, (n,), n > 0.
    """
    return float(np.quantile(masked, MASKED_SHARE))


def compute_confirmed_level(confirmed: Floats) -> float:
    """Level that confirmed answers give, in log odds: their lower conformal quantile.

    Of n answers, the k-th lowest has a share k / (n + 1) of further ones of their kind below it on average (Vovk et
    al., 2005). With fewer than nine it is the lowest.

    Args:
        confirmed: their log odds of sufficiency, (n,), n > 0.
    """
    odds = np.sort(confirmed)
    return float(odds[max(int(WITHHELD_SHARE * (len(odds) + 1)) - 1, 0)])


def compute_level(before: float, confirmed: Floats) -> float:
    """Level as a probability, in [0, 1].

    Args:
        before: level without verdicts, a probability in (0, 1).
        confirmed: log odds of sufficiency of the answers that judges confirmed, (n,).
    """
    if len(confirmed) < LEAST_CONFIRMED:
        return before
    odds = math.log(before / (1.0 - before))
    share = len(confirmed) / (len(confirmed) + CONFIRMED_FOR_HALF)
    return float(sigmoid(odds + share * (compute_confirmed_level(confirmed) - odds)))


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
    """The stated probability of a model's, both in [0, 1]."""
    if midpoint == 0.0 or not 0.0 < probability < 1.0:
        return probability
    return float(sigmoid(math.log(probability / (1.0 - probability)) - midpoint))
