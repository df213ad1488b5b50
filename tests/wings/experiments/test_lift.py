"""Intervals of differences, against published examples, tables and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.wings.experiments.core.lift import Sums, mean_difference, share_difference, sums, t_quantile, wilson


def build_sums(successes: int, n: int) -> Sums:
    return Sums(n, float(successes), float(successes))


# R. G. Newcombe, Statistics in Medicine 17 (1998) 873-890, Table II, method 10.
NEWCOMBE = [
    (56, 70, 48, 80, 0.0524, 0.3339),
    (9, 10, 3, 10, 0.1705, 0.8090),
    (6, 7, 2, 7, 0.0582, 0.8062),
    (5, 56, 0, 29, -0.0381, 0.1926),
    (0, 10, 0, 20, -0.1611, 0.2775),
    (0, 10, 0, 10, -0.2775, 0.2775),
    (10, 10, 0, 20, 0.6791, 1.0000),
    (10, 10, 0, 10, 0.6075, 1.0000),
]


@pytest.mark.parametrize(("a", "m", "b", "n", "low", "high"), NEWCOMBE)
def test_share_differences_are_the_published_ones(a: int, m: int, b: int, n: int, low: float, high: float) -> None:
    found = share_difference(build_sums(a, m), build_sums(b, n))
    assert found is not None
    assert found.value == pytest.approx(a / m - b / n)
    assert (found.low, found.high) == (pytest.approx(low, abs=6e-5), pytest.approx(high, abs=6e-5))


def test_empty_share_has_no_difference() -> None:
    assert share_difference(Sums(), build_sums(1, 2)) is None
    assert share_difference(build_sums(1, 2), Sums()) is None
    with pytest.raises(ValueError, match="nothing"):
        wilson(Sums())


@pytest.mark.parametrize(
    ("freedom", "expected"),
    [(1, 12.7062), (2, 4.3027), (5, 2.5706), (10, 2.2281), (30, 2.0423), (120, 1.9799), (10**6, 1.9600)],
)
def test_quantiles_are_those_of_the_tables(freedom: float, expected: float) -> None:
    assert t_quantile(freedom) == pytest.approx(expected, abs=5e-5)


def test_quantile_needs_a_degree_of_freedom() -> None:
    with pytest.raises(ValueError, match="freedom"):
        t_quantile(0.5)


def test_a_mean_difference_is_welchs() -> None:
    """Worked by hand: variances 1 and 10 of 3 and 5 numbers."""
    arm, baseline = sums(np.array([1.0, 2.0, 3.0])), sums(np.array([2.0, 4.0, 6.0, 8.0, 10.0]))
    assert arm.variance == pytest.approx(1.0)
    assert baseline.variance == pytest.approx(10.0)
    error = 1 / 3 + 10 / 5
    freedom = error**2 / ((1 / 3) ** 2 / 2 + 2**2 / 4)
    found = mean_difference(arm, baseline)
    assert found is not None
    assert found.value == pytest.approx(2 - 6)
    assert found.low == pytest.approx(-4 - t_quantile(freedom) * math.sqrt(error))
    assert found.high == pytest.approx(-4 + t_quantile(freedom) * math.sqrt(error))


def test_bounds_need_numbers_that_vary() -> None:
    same, one, none = sums(np.array([1.0, 1.0, 1.0])), sums(np.array([0.0])), sums(np.array([]))
    for arm in (same, one):
        found = mean_difference(arm, same)
        assert found is not None
        assert (found.low, found.high) == (None, None)
    assert mean_difference(none, same) is None


def test_welchs_interval_holds_what_it_says() -> None:
    draw = np.random.default_rng(3)
    held = 0
    for _ in range(400):
        found = mean_difference(sums(draw.normal(1.0, 1.0, 8)), sums(draw.normal(0.5, 3.0, 12)))
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.5 <= found.high
    assert 0.92 < held / 400 < 0.98


numbers = st.lists(st.floats(-100, 100) | st.just(math.nan), max_size=20).map(np.array)


@given(numbers, numbers)
def test_sums_add_up_and_leave_out_what_is_not_known(first: "np.ndarray", second: "np.ndarray") -> None:
    together = sums(np.concatenate([first, second]).astype(float))
    apart = sums(first.astype(float)) + sums(second.astype(float))
    assert apart.n == together.n == int((~np.isnan(np.concatenate([first, second]).astype(float))).sum())
    assert apart.total == pytest.approx(together.total, abs=1e-6)
    assert apart.squares == pytest.approx(together.squares, abs=1e-6)
    assert apart.variance == pytest.approx(together.variance, abs=1e-3)
