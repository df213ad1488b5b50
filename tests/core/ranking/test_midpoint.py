"""Sufficiency as a collection's answers state it."""

import numpy as np
import pytest

from engram.core.ranking.sufficiency import probability
from engram.core.ranking.weight_beliefs import sigmoid
from engram.core.ranking.withholding_level import calibrate, calibrate_weights, compute_midpoint

WEIGHTS = np.random.default_rng(0).normal(size=12)
ANSWERS = np.column_stack([np.ones(50), np.random.default_rng(1).normal(size=(50, 11))])


def test_nothing_measured_leaves_every_bit() -> None:
    assert calibrate_weights(WEIGHTS, 0.0).tobytes() == WEIGHTS.tobytes()


@pytest.mark.parametrize("midpoint", [-1.0, 0.5, 2.0])
def test_calibrated_weights_give_calibrated_probabilities_in_the_same_order(midpoint: float) -> None:
    before = [probability(features, WEIGHTS) for features in ANSWERS]
    after = [probability(features, calibrate_weights(WEIGHTS, midpoint)) for features in ANSWERS]
    assert after == pytest.approx([calibrate(one, midpoint) for one in before])
    assert np.argsort(after).tolist() == np.argsort(before).tolist()


@pytest.mark.parametrize("gap", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("place", [-1.0, 0.0, 3.0])
def test_what_is_stated_of_equal_parts_is_one_half_wherever_they_lie(gap: float, place: float) -> None:
    random = np.random.default_rng(0)
    present, absent = (place + side * gap / 2 + random.normal(size=400) for side in (1, -1))
    stated = sigmoid(np.concatenate([present, absent]) - compute_midpoint(present, absent))
    assert stated.mean() == pytest.approx(0.5, abs=0.02)
