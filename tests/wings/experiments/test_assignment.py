"""Arms by hash: shares are met, a unit stays, and percentages that change move only whom they must."""

import hashlib
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.wings.experiments.core.assignment import ALL_PERCENT, assign, point, segments

UNITS = [f"user-{number}" for number in range(4_000)]


def draw_shares(arms: int) -> st.SearchStrategy[list[float]]:
    """Percentages of so many arms, 100 together at most."""
    cuts = st.lists(st.floats(0, 100), min_size=arms, max_size=arms).map(sorted)
    return cuts.map(lambda ends: [end - start for start, end in pairwise([0.0, *ends])])


percentages = st.integers(1, 6).flatmap(draw_shares)


def owner(percents: list[float], at: float) -> int | None:
    return next((arm for start, end, arm in segments(percents) if start <= at < end), None)


def moves(before: list[float], after: list[float]) -> set[tuple[int | None, int | None]]:
    """From where to where units go, but for what rounding does to borders."""
    borders = {0.0, ALL_PERCENT} | {at for s in (segments(before), segments(after)) for x in s for at in x[:2]}
    middles = [(start + end) / 2 for start, end in pairwise(sorted(borders)) if end - start > 1e-6]
    return {(owner(before, at), owner(after, at)) for at in middles}


@given(percentages)
def test_each_arm_owns_its_percentage_and_no_two_the_same(percents: list[float]) -> None:
    owned = segments(percents)
    for arm, percent in enumerate(percents):
        assert sum(end - start for start, end, of in owned if of == arm) == pytest.approx(percent, abs=1e-6)
    for (_, end, _), (start, _, _) in pairwise(sorted(owned)):
        assert start >= end - 1e-9
    assert all(0 <= start < end <= ALL_PERCENT for start, end, _ in owned)


def test_shares_of_units_are_met() -> None:
    arms = [assign(7, ["off", "read", "paper"], [10.0, 20.0, 5.0], unit) for unit in UNITS]
    for arm, percent in ((0, 10), (1, 20), (2, 5), (None, 65)):
        expected = len(UNITS) * percent / 100
        assert abs(arms.count(arm) - expected) < 4 * np.sqrt(expected * (1 - percent / 100)), arm


def test_the_point_is_the_documented_hash() -> None:
    digest = hashlib.sha256(b'[7,["off","read"],"user-1"]').digest()
    assert point(7, ["off", "read"], "user-1") == pytest.approx(int.from_bytes(digest[:8], "big") / 2**64 * 100)


def test_assignment_depends_on_every_hashed_part() -> None:
    assert point(7, ["a", "b"], "u") == point(7, ["a", "b"], "u")
    hashed = [
        (7, ["a", "b"], "u"),
        (8, ["a", "b"], "u"),
        (7, ["b", "a"], "u"),
        (7, ["a", "b"], "v"),
        (7, ["ab"], "u"),
    ]
    assert len({point(*parts) for parts in hashed}) == 5


@given(st.text())
def test_any_unit_has_a_point(unit: str) -> None:
    assert 0 <= point(1, ["a"], unit) < ALL_PERCENT


def draw_small_shares(arms: int) -> st.SearchStrategy[list[float]]:
    return st.lists(st.floats(0, 100 / arms), min_size=arms, max_size=arms)


@given(
    st.tuples(draw_shares(2), draw_shares(2))
    | st.integers(1, 6).flatmap(lambda arms: st.tuples(draw_small_shares(arms), draw_small_shares(arms)))
)
def test_units_move_only_from_shrinking_to_growing_arms(changed: tuple[list[float], list[float]]) -> None:
    before, after = changed
    for left, entered in moves(before, after):
        if left != entered:
            assert left is None or after[left] < before[left]
            assert entered is None or after[entered] > before[entered]


def test_growing_from_ten_to_half_leaves_everybody_where_they_were() -> None:
    names = ["off", "read"]
    small = {unit: assign(1, names, [10, 10], unit) for unit in UNITS}
    large = {unit: assign(1, names, [50, 50], unit) for unit in UNITS}
    assert all(large[unit] == arm for unit, arm in small.items() if arm is not None)
    assert None not in large.values()


@pytest.mark.parametrize("percents", [[-1.0], [101.0], [60.0, 41.0], [float("nan")]])
def test_percentages_that_are_none_are_refused(percents: list[float]) -> None:
    with pytest.raises(ValueError, match="percentages"):
        segments(percents)
