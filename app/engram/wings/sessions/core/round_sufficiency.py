"""Enough after a round: with what probability a session's evidence pool holds all the evidence by then (ours).

What R-Feedback (RFM-RAG) asks of a pool. A logistic model with weights of its own: ``sufficiency`` is of the first
five of one ranked answer, and a later round ranks nothing by itself. Its features are the two of the published
classifier (``feedback_stop``) and the two figures that a session has after each round:

- bias: 1.
- entities, relevance: see ``feedback_stop``.
- own: log odds of the probability that the first five of the session's own question are enough, within
  ``MOST_LOG_ODDS``; 0 where that is not told.
- covered: what the pool has of what the question names and asks for, in [0, 1].
"""

import math

import numpy as np

from engram.core.ranking.weight_beliefs import Floats

ROUND_FEATURES = ("bias", "entities", "relevance", "own", "covered")
MOST_LOG_ODDS = 6.0
"""Largest absolute log odds: a surer word than 399 to 1 says no more."""


def features(entities: float, relevance: float, own: float | None, covered: float | None) -> Floats:
    """The features of a pool after a round, (len(ROUND_FEATURES),).

    Args:
        entities, relevance: of the published classifier.
        own: probability in [0, 1]; None where it is not told.
        covered: in [0, 1]; None counts as 0.
    """
    return np.array([1.0, entities, relevance, 0.0 if own is None else _log_odds(own), covered or 0.0])


def _log_odds(probability: float) -> float:
    if not 0.0 < probability < 1.0:
        return MOST_LOG_ODDS if probability >= 1.0 else -MOST_LOG_ODDS
    return min(max(math.log(probability) - math.log1p(-probability), -MOST_LOG_ODDS), MOST_LOG_ODDS)
