"""Conditions on metadata as values."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from engram.core.text.conditions import Combination, Comparison, build_comparison, parse_instant


def test_a_combination_has_a_part() -> None:
    with pytest.raises(ValueError, match="needs a condition"):
        Combination("all", ())


def test_a_date_is_compared_as_an_instant() -> None:
    first = datetime(2024, 5, 1, tzinfo=UTC)
    assert build_comparison("day", "less", "2024-05-01") == Comparison("day", "less", first)
    assert build_comparison("day", "equal", "2024-05-01") == Combination(
        "any", (Comparison("day", "equal", "2024-05-01"), Comparison("day", "equal", first))
    )
    assert build_comparison("day", "less", "2024-05") == Comparison("day", "less", "2024-05")
    assert build_comparison("day", "starts", "2024-05-01") == Comparison("day", "starts", "2024-05-01")


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2024-05-01", datetime(2024, 5, 1, tzinfo=UTC)),
        ("2024-05-01 10:30", datetime(2024, 5, 1, 10, 30, tzinfo=UTC)),
        ("2024-05-01t10:30:00z", datetime(2024, 5, 1, 10, 30, tzinfo=UTC)),
        ("2024-05-01T10:30:00.25+0200", datetime(2024, 5, 1, 10, 30, 0, 250000, timezone(timedelta(hours=2)))),
        ("2024-05-01T10:30-04", datetime(2024, 5, 1, 10, 30, tzinfo=timezone(timedelta(hours=-4)))),
        ("2024-02-30", None),
        ("20240501", None),
        ("2024-05-01T25:00", None),
        ("2024-05-01T10:30 ", None),
    ],
)
def test_instants(text: str, instant: datetime | None) -> None:
    assert parse_instant(text) == instant
