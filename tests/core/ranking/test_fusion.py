"""Reciprocal-rank fusion."""

import pytest

from engram.core.ranking.fusion import reciprocal_rank_fusion


def test_fusion_adds_reciprocal_ranks() -> None:
    fused = reciprocal_rank_fusion([["a", "b", "c"], ["b", "d", "a"]])
    assert fused == pytest.approx({"a": 1 / 61 + 1 / 63, "b": 1 / 62 + 1 / 61, "c": 1 / 63, "d": 1 / 62})


def test_the_order_of_rankings_does_not_matter() -> None:
    assert reciprocal_rank_fusion([[1, 2], [3, 1]]) == pytest.approx(reciprocal_rank_fusion([[3, 1], [1, 2]]))


def test_fusion_of_empty_rankings_is_empty() -> None:
    assert reciprocal_rank_fusion([]) == {}
    assert reciprocal_rank_fusion([[], []]) == {}
