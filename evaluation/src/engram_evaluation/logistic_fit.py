"""Fitting logistic models of sufficiency to judged answers and pools of several corpora."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.weight_beliefs import Floats, WeightBelief, sigmoid
from engram.core.ranking.withholding_level import compute_confirmed_level

MAX_STEPS = 100
TOLERANCE = 1e-9


def fit_logistic(
    corpora: Sequence[tuple[Floats, NDArray[np.bool_]]], ridge: float, verdicts: float
) -> WeightBelief:
    """A prior from judged answers of several corpora, each corpus counting the same.

    The mean maximises the mean log-likelihood less ridge/2 |w|^2, which is concave, by Newton's method with step
    halving. The ridge is of features that are standardised over the corpora, and not of the bias; mean and
    precision are of the features as they are. The precision is the curvature, so that the prior weighs as much as
    ``verdicts`` average ones.

    Args:
        corpora: of each its answers' features, (n, k), the first of them 1, and whether they held all, (n,).
        ridge: above 0.
        verdicts: above 0.

    Raises:
        ValueError: all answers were enough or none was, or the search does not converge.
    """
    rows, enough, share = standardise_corpora(corpora)
    to_standard = compute_standardisation(rows, share)
    standard = rows @ to_standard
    penalty = np.full(rows.shape[1], ridge)
    penalty[0] = TOLERANCE
    weights = np.zeros(rows.shape[1])
    for _ in range(MAX_STEPS):
        p = np.exp(-np.logaddexp(0.0, -(standard @ weights)))
        gradient = (share * (enough - p)) @ standard - penalty * weights
        curvature = (standard * (share * p * (1.0 - p))[:, None]).T @ standard + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        if float(gradient @ step) < TOLERANCE:
            # w·x is the same of standardised features x T and weights T^-1 w.
            back = np.linalg.inv(to_standard)
            precision = verdicts * back.T @ curvature @ back
            return WeightBelief(to_standard @ weights, (precision + precision.T) / 2.0)
        scale, before = 1.0, _objective(standard, enough, share, penalty, weights)
        while _objective(standard, enough, share, penalty, weights + scale * step) < before and scale > TOLERANCE:
            scale /= 2.0
        weights = weights + scale * step
    raise ValueError(f"the weights did not converge in {MAX_STEPS} steps")


def calibrate(prior: WeightBelief, corpora: Sequence[tuple[Floats, NDArray[np.bool_]]]) -> WeightBelief:
    """The prior with its log odds shifted and scaled to be true of judged answers (Platt, 1999).

    Args:
        corpora: as of ``fit_logistic``, each counting the same.

    Raises:
        ValueError: as ``fit_logistic``.
    """
    odds = [(np.column_stack([np.ones(len(rows)), rows @ prior.mean]), enough) for rows, enough in corpora]
    shift, scale = fit_logistic(odds, TOLERANCE, 1.0).mean
    mean = scale * prior.mean
    mean[0] += shift
    return WeightBelief(mean, prior.precision)


def find_lowest_level(mean: Floats, corpora: Sequence[tuple[Floats, NDArray[np.bool_]]]) -> float:
    """Lowest ``withholding_level.compute_confirmed_level`` of several corpora's sufficient answers.

    Args:
        mean: weights, (k,).
        corpora: as of ``fit_logistic``.
    """
    odds = min(compute_confirmed_level(rows[enough] @ mean) for rows, enough in corpora if enough.any())
    return float(sigmoid(odds))


def expect_features(precision: Floats, absent: Sequence[int]) -> Floats:
    """Expect the features that are absent, as weights of the others, (len(absent), k).

    With the others' weights as they are, this scores an answer as weights do that were fitted without the absent
    features: the Gaussian belief is conditioned on their weights being 0. So x_a = Λ_ao Λ_oo^-1 x_o.

    Args:
        precision: Λ of the fitted weights, (k, k).
        absent: places of the features.
    """
    present = [at for at in range(len(precision)) if at not in set(absent)]
    expected = np.zeros((len(absent), len(precision)))
    expected[:, present] = np.linalg.solve(
        precision[np.ix_(present, present)], precision[np.ix_(present, list(absent))]
    ).T
    return expected


def loosen_prior(prior: WeightBelief, bias: float, slope: float) -> WeightBelief:
    """The prior less sure of how often answers are enough and of how much its own word counts than of their order.

    Other corpora tell which answer is likelier enough better than how likely it is: families of data sets differ in
    both numbers of a Platt scaling, the bias and the slope, by far more than a fit to some of them is unsure of
    them. Σ + bias e eᵀ + slope m mᵀ lets a collection's verdicts move these two first.

    Args:
        bias: variance >= 0 of the log odds of a collection.
        slope: variance >= 0 of what the mean m is multiplied by.

    Raises:
        ValueError: a variance is negative.
    """
    if bias < 0 or slope < 0:
        raise ValueError("a variance must not be negative")
    only = np.zeros(len(prior.mean))
    only[0] = 1.0
    spread = np.linalg.inv(prior.precision) + bias * np.outer(only, only) + slope * np.outer(prior.mean, prior.mean)
    precision = np.linalg.inv(spread)
    return WeightBelief(prior.mean, (precision + precision.T) / 2.0)


def standardise_corpora(corpora: Sequence[tuple[Floats, NDArray[np.bool_]]]) -> tuple[Floats, Floats, Floats]:
    """Rows of several corpora, (n, k), whether each was enough, (n,), and what each counts, (n,), which sums to 1.

    Raises:
        ValueError: all were enough, or none was.
    """
    usable = [(rows, enough) for rows, enough in corpora if len(rows)]
    every = [bool(one) for _, enough in usable for one in enough]
    if all(every) or not any(every):
        raise ValueError("there is nothing to tell apart in these questions")
    rows = np.concatenate([rows for rows, _ in usable])
    enough = np.concatenate([enough for _, enough in usable]).astype(np.float64)
    share = np.concatenate([np.full(len(rows), 1.0 / len(rows) / len(usable)) for rows, _ in usable])
    return rows, enough, share


def compute_standardisation(rows: Floats, share: Floats) -> Floats:
    """T, (k, k), of which rows T have mean 0 and variance 1 in every column but the first, which is 1."""
    mean = share @ rows
    spread = np.sqrt(share @ (rows - mean) ** 2)
    scale = 1.0 / np.where(spread > TOLERANCE, spread, 1.0)
    scale[0] = 1.0
    matrix = np.diag(scale)
    matrix[0, 1:] = -mean[1:] * scale[1:]
    return matrix


def _objective(rows: Floats, enough: Floats, share: Floats, penalty: Floats, weights: Floats) -> float:
    linear = rows @ weights
    likelihood = share @ (enough * linear - np.logaddexp(0.0, linear))
    return float(likelihood - 0.5 * (penalty * weights) @ weights)
