"""Scores of a reranker beside the ranking's own: how far to trust them is a belief that verdicts move (ours).

A reranker reads a question and a passage together and gives a relevance. Its log odds are one more feature of the
ranking, with a weight of its own: score = w·x + v·s. The belief about v is apart from that about w, so that what a
collection learned without a reranker stays as it is, and a ranking without the reranker loses nothing.

A verdict's likelihood is that of ``weight_beliefs`` over two features: the score by the prior weights w0·x, whose
weight is 1 and hardly moves, and the log odds s.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.weight_beliefs import WeightBelief

Floats = NDArray[np.float64]

FEATURE = "reranker"
"""Name of the log odds in traces."""
MOST_LOG_ODDS = 9.2
"""Largest log odds: of a relevance of .9999."""
TRUST, DEVIATION = 0.25, 0.25
"""Weight of the log odds before any verdict, and its standard deviation."""
_FIXED = 1e6
"""Precision of the weight of the ranking's own score."""


@dataclass(frozen=True, slots=True)
class RerankedFeatures:
    """Features of a ranking by a reranker, as the log keeps them.

    Attributes:
        prior: fingerprint of the belief that it was weighed by.
        features: (n, 2), of the candidates that were kept: the score by the prior weights and the log odds.
    """

    prior: str
    features: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class RerankedScores:
    """Scores that a reranker gave to the candidates of one query.

    Attributes:
        prior: fingerprint of the belief that it was weighed by.
        features: (n, 2), the score by the prior weights and the log odds.
        trust: weight of the log odds.
    """

    prior: str
    features: Floats
    trust: float

    @property
    def log_odds(self) -> Floats:
        """Log odds of each candidate, (n,)."""
        return np.asarray(self.features[:, 1])

    @property
    def added(self) -> Floats:
        """Part of each candidate's score that comes from the reranker, (n,)."""
        return self.trust * self.log_odds

    def keep(self, places: NDArray[np.intp]) -> RerankedFeatures:
        """Features of the candidates at these places, as the log keeps them."""
        return RerankedFeatures(self.prior, self.features[places].astype(np.float32))

    def reorder(self, order: NDArray[np.intp]) -> "RerankedScores":
        """Scores of the candidates in another order."""
        return RerankedScores(self.prior, self.features[order], self.trust)


def trust_prior() -> WeightBelief:
    """The belief before any verdict: over the weights of the ranking's own score and of the log odds."""
    return WeightBelief(np.array([1.0, TRUST]), np.diag([_FIXED, DEVIATION**-2]))


def to_log_odds(scores: Sequence[float]) -> list[float]:
    """Log odds, in [-9.2, 9.2], of a reranker's scores.

    Rerankers publish relevances in [0, 1]. If any score lies outside, all are taken for log odds.

    Raises:
        ValueError: a score is not finite.
    """
    values = np.asarray(scores, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError("a score is not finite")
    if values.size and (values.min() < 0.0 or values.max() > 1.0):
        return [float(value) for value in np.clip(values, -MOST_LOG_ODDS, MOST_LOG_ODDS)]
    with np.errstate(divide="ignore"):
        odds = np.log(values) - np.log1p(-values)
    return [float(value) for value in np.clip(odds, -MOST_LOG_ODDS, MOST_LOG_ODDS)]


def features(own: Floats, candidates: Sequence[int], odds: Mapping[int, float]) -> Floats:
    """The two features of each candidate, (n, 2); one that the reranker did not read has the lowest log odds.

    Args:
        own: score by the prior weights, (n,).
        odds: candidate -> log odds, of at least one.
    """
    lowest = min(odds.values())
    return np.column_stack([own, [odds.get(candidate, lowest) for candidate in candidates]])
