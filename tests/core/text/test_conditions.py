"""Conditions on metadata as values."""

import pytest

from engram.core.text.conditions import Combination, Comparison, build_equal_to_any


def test_a_combination_has_a_part() -> None:
    with pytest.raises(ValueError, match="needs a condition"):
        Combination("all", ())


def test_a_field_that_equals_any_of_some_values() -> None:
    assert build_equal_to_any("year", (1934, "1934")) == Combination(
        "any", (Comparison("year", "equal", 1934), Comparison("year", "equal", "1934"))
    )
