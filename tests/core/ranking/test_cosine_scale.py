"""One scale for the cosines of all encoders."""

import numpy as np
import pytest

from engram.core.ranking.cosine_scale import compute_unrelated_cosine, rescale_cosines


def test_unrelated_texts_have_0_and_equal_ones_1() -> None:
    assert rescale_cosines(np.array([0.7, 0.85, 1.0, 0.4]), 0.7) == pytest.approx([0.0, 0.5, 1.0, -1.0])


def test_cosines_stay_where_unrelated_texts_have_none() -> None:
    cosines = np.array([0.1, 0.2])

    assert rescale_cosines(cosines, 0.0) is cosines


@pytest.mark.parametrize(("cosine", "unrelated"), [(0.1, 0.0), (0.75, 0.75), (1.0, 0.95)])
def test_a_small_cosine_of_unrelated_texts_counts_as_0(cosine: float, unrelated: float) -> None:
    question = np.array([[1.0, 0.0]], dtype=np.float32)
    passages = np.array([[cosine, np.sqrt(1.0 - cosine**2)]] * 3, dtype=np.float32)

    assert compute_unrelated_cosine(question, passages) == pytest.approx(unrelated)
