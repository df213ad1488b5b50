"""Repeated needs: how often asked questions have the need of a judged one, told without verdicts on them (ours).

Judged questions alone cannot tell. Where each need was judged once, no two of them have the same evidence, however
often people ask for it in other words. But then asked questions come nearer to judged ones than judged ones with
other evidence come to each other. Let x be the features of a question and the nearest judged one, f0 the density of
x where the needs differ, and ρ the share of asked questions with the need of that one. Among asked questions,

    f(x) = f0(x) · (1 - ρ + exp(w·x))          P(same need | x) = exp(w·x) / (1 - ρ + exp(w·x))

These are the two groups of the local false discovery rate (Efron 2004, "Large-Scale Simultaneous Hypothesis
Testing", Journal of the American Statistical Association 99), with an exponential tilt of f0 for equal needs
(Anderson 1979, "Multivariate Logistic Compounds", Biometrika 66). f0 takes no form: w and ρ are what best tells
asked pairs from judged pairs with other evidence, by a regression whose log odds are the logarithm of the bracket.
"""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.question_priors import (
    MAX_NEARNESS,
    PRIOR_LEAD,
    PRIOR_NEARNESS,
    PRIOR_NEED_DEVIATIONS,
    PRIOR_NEEDS,
    PRIOR_PAIRS,
    PRIOR_WORDS,
)
from engram.core.ranking.weight_beliefs import sigmoid

Floats = NDArray[np.float64]

LARGEST_EXPONENT = 50.0
STEPS = 60
LARGEST_STEP = 1.0
"""Largest change of a weight in one step of Fisher scoring."""


@dataclass(frozen=True, slots=True)
class RepeatedNeeds:
    """Share of asked questions with the need of the nearest judged one, and the weights that tell them.

    Attributes:
        weights: w, (5,), see ``build_features``.
        share: ρ, in (0, 1).
        least_share: ρ, one standard deviation lower.
    """

    weights: Floats
    share: float
    least_share: float

    def compute_log_odds(self, features: Floats) -> Floats:
        """Log odds that two questions have the same need, for ``features`` (n, 5), (n,)."""
        return np.asarray(features @ self.weights - np.log1p(-self.share))


def build_features(nearness: Floats, leads: Floats, words: Floats, log_ratios: Floats) -> Floats:
    """Features of pairs of questions, (n, 5): a constant, nearness, lead, cosine of words and contrasts.

    Args:
        nearness: in standard units, (n,).
        leads: nearness less that of the next judged question with other evidence, (n,).
        words: cosine of idf-weighted words, in [0, 1], (n,); NaN counts as no common word.
        log_ratios: summed log likelihood ratios of contrasts, (n,).
    """
    return np.column_stack(
        [np.ones(len(nearness)), np.minimum(nearness, MAX_NEARNESS), leads, np.nan_to_num(words), log_ratios]
    )


def learn_repeated_needs(apart: Floats, asked: Floats) -> RepeatedNeeds:
    """Learn how often asked questions have the need of the nearest judged one.

    The weights of largest posterior density are found by Fisher scoring.

    Args:
        apart: features of judged questions and the nearest judged one with other evidence, (m, 5).
        asked: features of asked questions and the nearest judged one, (n, 5).
    """
    features = np.concatenate([_imagine_pairs(), apart, asked])
    labels = np.arange(len(features)) >= len(features) - len(asked)
    prevalence = np.log(len(asked) / (len(features) - len(asked))) if len(asked) else -np.inf
    precision = PRIOR_NEED_DEVIATIONS**-2.0

    def compute_bracket(weights: Floats) -> tuple[Floats, Floats, Floats]:
        """exp(w·x) / (1 - ρ + exp(w·x)), ρ (1 - ρ) / (1 - ρ + exp(w·x)) and the probability of being asked."""
        tilt = np.exp(np.minimum(features @ weights[:-1], LARGEST_EXPONENT))
        share = float(sigmoid(weights[-1]))
        bracket = 1.0 - share + tilt
        return tilt / bracket, share * (1.0 - share) / bracket, sigmoid(prevalence + np.log(bracket))

    def compute_loss(weights: Floats) -> float:
        probabilities = compute_bracket(weights)[2]
        likelihood = np.log(np.maximum(np.where(labels, probabilities, 1.0 - probabilities), 1e-300)).sum()
        return float((precision * (weights - PRIOR_NEEDS) ** 2).sum() / 2.0 - likelihood)

    weights, loss, curvature = PRIOR_NEEDS, compute_loss(PRIOR_NEEDS), np.diag(precision)
    for _ in range(STEPS):
        same, fewer, probabilities = compute_bracket(weights)
        slopes = np.column_stack([features * same[:, None], -fewer])
        curvature = (slopes * (probabilities * (1.0 - probabilities))[:, None]).T @ slopes + np.diag(precision)
        gradient = slopes.T @ (labels - probabilities) - precision * (weights - PRIOR_NEEDS)
        step = np.linalg.solve(curvature, gradient)
        step *= min(1.0, LARGEST_STEP / max(float(np.abs(step).max()), 1e-12))
        while (tried := compute_loss(weights + step)) > loss and np.abs(step).max() > 1e-9:
            step /= 2.0
        if tried >= loss:
            break
        weights, loss = weights + step, tried
    deviation = float(np.sqrt(np.linalg.inv(curvature)[-1, -1]))
    return RepeatedNeeds(weights[:-1], *(float(sigmoid(weights[-1] - lower)) for lower in (0.0, deviation)))


def _imagine_pairs() -> Floats:
    """Features of ``PRIOR_PAIRS`` pairs with other evidence, at the quantiles of the prior, (n, 5)."""
    normal, places = NormalDist(), np.arange(PRIOR_PAIRS)
    mean, deviation = PRIOR_NEARNESS
    quantiles = (places + 0.5) / PRIOR_PAIRS
    nearness = np.array([mean + deviation * normal.inv_cdf(one) for one in quantiles.tolist()])
    words = np.array([PRIOR_WORDS * normal.inv_cdf((1.0 + one) / 2.0) for one in quantiles.tolist()])
    leads = -PRIOR_LEAD * np.log1p(-quantiles)
    # Strides through the quantiles, so that no signal tells another.
    return build_features(
        nearness, leads[3 * places % PRIOR_PAIRS], words[7 * places % PRIOR_PAIRS], np.zeros(PRIOR_PAIRS)
    )
