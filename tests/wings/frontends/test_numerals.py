"""Numbers that are written as text."""

import pytest

from engram.wings.frontends.core.numerals import parse_number


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("5", 5),
        (" 5.50 ", 5.5),
        ("-1e3", -1000),
        (".5", 0.5),
        ("+2.", 2),
        (7, 7),
        (2.0, 2),
        (0.25, 0.25),
        (10**400, 10**400),
    ],
)
def test_numbers(value: str | float, number: float) -> None:
    assert parse_number(value) == number


@pytest.mark.parametrize("value", ["", "five", "1_000", "nan", "inf", "1e999", "0x10", "٣", True, float("inf")])
def test_text_without_a_number_has_no_value(value: str | float) -> None:
    assert parse_number(value) is None
