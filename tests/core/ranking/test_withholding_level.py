"""The sufficiency below which answers are withheld."""

import math

import numpy as np
import pytest

from engram.core.ranking.weight_beliefs import sigmoid
from engram.core.ranking.withholding_level import (
    CONFIRMED_FOR_HALF,
    LEAST_CONFIRMED,
    MASKED_SHARE,
    compute_confirmed_level,
    compute_level,
    compute_masked_level,
)


@pytest.mark.parametrize(("count", "withheld"), [(1, 0), (9, 0), (19, 1), (20, 1), (29, 2)])
def test_confirmed_level_withholds_one_right_answer_in_ten_at_most(count: int, withheld: int) -> None:
    odds = np.random.default_rng(count).permutation(count) / 10.0
    assert int((odds < compute_confirmed_level(odds)).sum()) == withheld


def test_masked_level_lies_above_a_share_of_masked_answers() -> None:
    odds = np.random.default_rng(0).permutation(101) / 10.0
    assert compute_masked_level(odds) == pytest.approx(10.0 * MASKED_SHARE)


def test_few_confirmed_answers_leave_the_level() -> None:
    assert compute_level(0.4, np.full(LEAST_CONFIRMED - 1, 3.0)) == 0.4


def test_confirmed_answers_pull_the_level_to_theirs() -> None:
    before, own = math.log(0.4 / 0.6), 2.0
    assert compute_level(0.4, np.full(CONFIRMED_FOR_HALF, own)) == pytest.approx(float(sigmoid((before + own) / 2)))
    many = compute_level(0.4, np.full(100 * CONFIRMED_FOR_HALF, own))
    assert many == pytest.approx(float(sigmoid(own)), abs=0.01)
