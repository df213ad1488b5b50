"""Level of ``min_sufficiency`` "auto": the sufficiency below which an answer is withheld (ours).

At most ``WITHHELD_SHARE`` of the right answers should be below the level. Two samples of the collection tell where
it is, in log odds of sufficiency:

- masked: answers to questions that are made from passages, with these passages left out of the search. They are
  absent by construction, and score like questions of people that the collection does not answer. Beside their
  passages such questions score higher than those of people, by an amount that differs between collections, since
  they copy words. So only the masked half is used. The level that withholds one right answer of people in ten lies
  at the .16 to .77 quantile of the masked answers, over six pairs of data set and encoder. The quantile
  ``MASKED_SHARE`` withholds .08 of the right answers on average over these, and .18 at most.
- confirmed: answers that judges confirmed. The level is their conformal quantile.

The level is the mean of both, in which n confirmed answers weigh n / (n + ``CONFIRMED_FOR_HALF``).
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
