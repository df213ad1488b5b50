"""Enough after a round: with what probability a session's evidence pool holds all the evidence by then (ours).

What R-Feedback (RFM-RAG) asks of a pool, as verdicts on sessions teach it. A logistic model like that of
``sufficiency``, with a belief of its own: that one is of the first five of one ranked answer, and a later round
ranks nothing by itself. What is looked at are the two features of the published classifier (``feedback_stop``) and
the two figures that a session has after each round:

- bias: 1.
- entities, relevance: see ``feedback_stop``.
- own: log odds of the probability that the first five of the session's own question are enough, within
  ``MOST_LOG_ODDS``; 0 where that is not told.
- covered: what the pool has of what the question names and asks for, in [0, 1].
"""

import math
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add

import numpy as np

from engram.core.filter.logged_verdict import LoggedVerdict
from engram.core.ranking.sufficiency import build_observation, label_evidence
from engram.core.ranking.weight_beliefs import Floats, WeightBelief, WeightEvidence, WeightObservation

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


def observe_verdict(
    verdict: LoggedVerdict,
    named: Iterable[tuple[int, int]],
    prior: WeightBelief,
    noise: float,
    *,
    known: bool = True,
) -> WeightObservation | None:
    """Return a verdict's observation of the pools after its rounds; None if it has none.

    A pool sufficed if it held a sentence of every passage that the verdict supports, see
    ``sufficiency.label_evidence``. The rounds of one session are one verdict, so each counts as a share.

    Args:
        named: (passage, y) of the sentences that it speaks of.
        noise: R of the verdict.
        known: whether it is known of every sentence that it speaks of in which passage it is.
    """
    targets, found_passages, observations = list(named), set[int](), list[WeightObservation]()
    for judged in verdict.rounds:
        found_passages |= set(judged.found)
        if len(judged.features) != len(prior.mean):
            continue  # one that teaches nothing, or of a version with other features
        outcome = label_evidence(verdict, targets, found_passages, known=known)
        if outcome is not None:
            observations.append(build_observation(np.array(judged.features), outcome, prior, noise))
    return _mean(observations) if observations else None


def _mean(observations: Sequence[WeightObservation]) -> WeightObservation:
    total = reduce(add, (one.evidence for one in observations))
    share = 1.0 / len(observations)
    return WeightObservation(
        WeightEvidence(total.information * share, total.precision * share),
        sum(one.surprise for one in observations) * share,
    )
