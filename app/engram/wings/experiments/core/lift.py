"""Differences between the arms of an experiment, each with a 95% interval in closed form.

Closed forms and not a bootstrap: they need counts and sums only, so memory does not grow with what is compared,
they draw nothing, and Newcombe's holds where a bootstrap collapses, at shares of 0 and 1 and for a handful of
verdicts. All of them take queries for independent: several queries of one unit count as so many, which makes an
interval somewhat too narrow.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CONFIDENCE = 0.95
Z = 1.959963984540054
"""The normal quantile of (1 + CONFIDENCE) / 2."""
NODES = 64
STEPS = 60


@dataclass(frozen=True, slots=True)
class Sums:
    """Count, sum and sum of squares of observed numbers."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(self.n + other.n, self.total + other.total, self.squares + other.squares)

    @property
    def mean(self) -> float | None:
        """None if there are none."""
        return self.total / self.n if self.n else None

    @property
    def variance(self) -> float:
        """Unbiased; 0 of fewer than two."""
        if self.n < 2:
            return 0.0
        return max(self.squares - self.total**2 / self.n, 0.0) / (self.n - 1)


def sums(values: NDArray[np.float64]) -> Sums:
    """Sum the values (n,), leaving out nan, which stands for unknown."""
    known_values = values[~np.isnan(values)]
    return Sums(len(known_values), float(known_values.sum()), float(known_values @ known_values))


@dataclass(frozen=True, slots=True)
class ArmDifference:
    """An arm's value less the baseline's; without bounds where the numbers do not give any."""

    value: float
    low: float | None
    high: float | None


def share_difference(arm: Sums, baseline: Sums) -> ArmDifference | None:
    """Return the difference of two shares with Newcombe's hybrid score interval; None if one has no numbers.

    Method 10 of R. G. Newcombe, Statistics in Medicine 17 (1998), without continuity correction: the Wilson
    interval of each share, put together.

    Args:
        arm, baseline: of zeros and ones.
    """
    if arm.mean is None or baseline.mean is None:
        return None
    difference = arm.mean - baseline.mean
    low, high = wilson(arm)
    base_low, base_high = wilson(baseline)
    return ArmDifference(
        difference,
        difference - math.hypot(arm.mean - low, base_high - baseline.mean),
        difference + math.hypot(high - arm.mean, baseline.mean - base_low),
    )


def wilson(share: Sums) -> tuple[float, float]:
    """The score interval of one share (E. B. Wilson, JASA 22, 1927), in [0, 1]; the sums are of zeros and ones.

    Raises:
        ValueError: there are no numbers.
    """
    if not share.n:
        raise ValueError("a share of nothing has no interval")
    p, n = share.total / share.n, share.n
    centre = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z * math.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    return max(centre - half, 0.0), min(centre + half, 1.0)


def mean_difference(arm: Sums, baseline: Sums) -> ArmDifference | None:
    """Return the difference of two means with Welch's t interval (B.

    L. Welch, Biometrika 34, 1947); None if one has no numbers.

    No bounds if an arm has fewer than two numbers, or neither varies: that says nothing of how they would.
    """
    if arm.mean is None or baseline.mean is None:
        return None
    difference = arm.mean - baseline.mean
    errors = [side.variance / side.n for side in (arm, baseline)]
    if min(arm.n, baseline.n) < 2 or sum(errors) <= 0:
        return ArmDifference(difference, None, None)
    freedom = sum(errors) ** 2 / sum(e**2 / (side.n - 1) for e, side in zip(errors, (arm, baseline), strict=True))
    half = t_quantile(freedom) * math.sqrt(sum(errors))
    return ArmDifference(difference, difference - half, difference + half)


def t_quantile(freedom: float) -> float:
    """The t with P(-t <= T <= t) = ``CONFIDENCE`` for Student's T with ``freedom`` degrees of freedom, at least 1.

    By bisection. The probability is an integral over a finite range once x = √ν tan θ is put in:
    P = 2 Γ((ν+1)/2) / (√π Γ(ν/2)) ∫₀^atan(t/√ν) cos^(ν-1) θ dθ, which Gauss-Legendre nodes give to 1e-10.

    Raises:
        ValueError: fewer than 1 degree of freedom.
    """
    if freedom < 1 - 1e-12:
        raise ValueError("there must be at least 1 degree of freedom")
    nodes, node_weights = np.polynomial.legendre.leggauss(NODES)
    logarithm = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(math.pi) / 2
    low, high = 0.0, 64.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        end = math.atan(middle / math.sqrt(freedom))
        theta = end * (nodes + 1) / 2
        inside = np.exp(logarithm + (freedom - 1) * np.log(np.cos(theta)))
        if end * float(node_weights @ inside) < CONFIDENCE:
            low = middle
        else:
            high = middle
    return (low + high) / 2
