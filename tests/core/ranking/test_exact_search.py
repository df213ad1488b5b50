"""Exact search, against sorting everything."""

import numpy as np
import pytest

from engram.core.ranking.exact_search import find_nearest


@pytest.mark.parametrize(("rows", "count"), [(200, 1), (200, 50), (200, 200), (200, 500), (1, 1), (0, 5), (7, 0)])
def test_the_nearest_come_first(rows: int, count: int) -> None:
    drawn = np.random.default_rng(rows + count)
    keys = drawn.normal(size=(rows, 24)).astype(np.float32)
    vector = drawn.normal(size=24).astype(np.float32)
    expected = np.argsort(-(keys.astype(np.float64) @ vector.astype(np.float64)))[:count]
    assert find_nearest(keys, vector, count).tolist() == expected.tolist()


def test_equal_neighbours_are_cut_to_the_requested_number() -> None:
    keys = np.repeat(np.eye(2, dtype=np.float32), 5, axis=0)
    found = find_nearest(keys, np.array([1.0, 0.5], dtype=np.float32), 7).tolist()
    assert set(found[:5]) == set(range(5))
    assert len(set(found)) == 7
