"""Fitting the prior of the ranking weights to judged questions of several corpora (see ``weight_beliefs``)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.weight_beliefs import Floats, WeightBelief

MAX_STEPS = 100
TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class FittedQuestion:
    """One judged question: its candidates' features (n, k), and which of them are supported (n,)."""

    features: Floats
    supported: NDArray[np.bool_]


def fit(corpora: Sequence[Sequence[FittedQuestion]], ridge: float, verdicts: float) -> WeightBelief:
    """A prior from judged questions of several corpora, each corpus counting the same.

    The mean maximises the mean log-likelihood of ``belief``, no rival spared, less ridge/2 |w|^2, which is concave,
    by Newton's method with step halving. The precision is the curvature there, so that the prior weighs as much
    as ``verdicts`` average ones.

    Args:
        corpora: their judged questions.
        ridge: above 0.
        verdicts: above 0.

    Raises:
        ValueError: no question has both a supported candidate and another, or the search does not converge.
    """
    usable = [[j for j in corpus if j.supported.any() and not j.supported.all()] for corpus in corpora]
    usable = [corpus for corpus in usable if corpus]
    if not usable:
        raise ValueError("there is nothing to compare in these questions")
    stacks = [_Stack(corpus) for corpus in usable]
    size = usable[0][0].features.shape[1]
    mean = np.zeros(size)
    objective, gradient, curvature = _objective(stacks, mean, ridge)
    for _ in range(MAX_STEPS):
        step = np.linalg.solve(curvature, gradient)
        if float(gradient @ step) < TOLERANCE:
            return WeightBelief(mean, verdicts * curvature)
        scale = 1.0
        while (trial := _objective(stacks, mean + scale * step, ridge))[0] < objective and scale > TOLERANCE:
            scale /= 2.0
        mean = mean + scale * step
        objective, gradient, curvature = trial
    raise ValueError(f"the weights did not converge in {MAX_STEPS} steps")


class _Stack:
    """Questions of one corpus, their candidates stacked, (N, k)."""

    def __init__(self, corpus: Sequence[FittedQuestion]) -> None:
        sizes = np.array([len(question.features) for question in corpus])
        self.features = np.concatenate([question.features for question in corpus])
        self.supported = np.concatenate([question.supported for question in corpus])
        self.question = np.repeat(np.arange(len(corpus)), sizes)
        self.starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        self.chosen = np.flatnonzero(self.supported)
        counts = np.bincount(self.question[self.chosen], minlength=len(corpus))
        self.share = 1.0 / counts[self.question[self.chosen]] / len(corpus)

    def terms(self, weights: Floats) -> tuple[float, Floats, Floats]:
        """Mean log-likelihood over the questions, its gradient, and its negative Hessian."""
        scores = self.features @ weights
        rivals = np.where(self.supported, -np.inf, scores)
        highest = np.maximum.reduceat(rivals, self.starts)
        share = np.exp(rivals - highest[self.question])
        total = np.add.reduceat(share, self.starts)
        share /= total[self.question]
        mean = np.add.reduceat(self.features * share[:, None], self.starts)
        centred = self.features - mean[self.question]
        chosen_question = self.question[self.chosen]
        behind = highest[chosen_question] + np.log(total[chosen_question]) - scores[self.chosen]
        miss = np.exp(-np.logaddexp(0.0, -behind))  # probability that a rival comes first
        apart = self.features[self.chosen] - mean[chosen_question]
        gradient = (self.share * miss) @ apart
        # Covariance of a mixture: the rivals' own, and that between their mean and the chosen one.
        within = np.bincount(chosen_question, self.share * miss, minlength=len(self.starts))[self.question] * share
        between = self.share * miss * (1.0 - miss)
        curvature = (centred * within[:, None]).T @ centred + (apart * between[:, None]).T @ apart
        return -float(self.share @ np.logaddexp(0.0, behind)), gradient, curvature


def _objective(stacks: Sequence[_Stack], weights: Floats, ridge: float) -> tuple[float, Floats, Floats]:
    parts = [stack.terms(weights) for stack in stacks]
    value = sum(part[0] for part in parts) / len(parts) - 0.5 * ridge * float(weights @ weights)
    gradient = np.sum([part[1] for part in parts], axis=0) / len(parts) - ridge * weights
    curvature = np.sum([part[2] for part in parts], axis=0) / len(parts) + ridge * np.eye(len(weights))
    return value, gradient, curvature
