"""Ratings of a judge as rewards."""

import pytest

from engram.wings.sessions.core.rewards import convert_rating


def test_ratings() -> None:
    assert [convert_rating(value) for value in (0, 7.5, 10)] == [0.0, 0.75, 1.0]
    for wrong in (-0.1, 10.1, float("nan")):
        with pytest.raises(ValueError, match="rating"):
            convert_rating(wrong)
