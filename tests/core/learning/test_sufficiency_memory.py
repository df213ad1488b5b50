"""Sufficiency of answers by verdicts: never below what the judged answers were, and always in [0, 1]."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.learning.sufficiency_memory import PARTIAL, update_sufficiency

UNIT = st.floats(0, 1)


def update_one(
    answered: float, sufficiency: float, target: float, gain: float, judged: float, complete: bool
) -> tuple[float, float]:
    highest, risen = update_sufficiency(
        np.array([answered]),
        np.array([sufficiency]),
        targets=np.array([target]),
        gains=np.array([gain]),
        judged=np.array([judged]),
        complete=np.array([complete]),
    )
    return float(highest[0]), float(risen[0])


@pytest.mark.parametrize(
    ("target", "complete", "wanted"),
    [
        (1.0, True, (0.6, 0.6 + 0.5 * 0.4)),
        (1.0, False, (0.6, 0.6 + 0.5 * PARTIAL * 0.4)),
        (0.0, True, (0.5 * 0.2, 0.5 * 0.3)),
        (0.0, False, (0.5 * 0.2, 0.5 * 0.3)),
    ],
)
def test_one_verdict_moves_support_and_sufficiency(
    target: float, complete: bool, wanted: tuple[float, float]
) -> None:
    assert update_one(0.2, 0.3, target, 0.5, 0.6, complete) == pytest.approx(wanted)


@pytest.mark.parametrize("complete", [True, False])
def test_unknown_sufficiency_leaves_the_memory_unchanged(complete: bool) -> None:
    assert update_one(0.2, 0.3, 1.0, 0.5, math.nan, complete) == (0.2, 0.3)


@given(UNIT, UNIT, UNIT, UNIT, st.booleans())
def test_support_never_lowers(answered: float, sufficiency: float, gain: float, judged: float, whole: bool) -> None:
    highest, risen = update_one(answered, sufficiency, 1.0, gain, judged, whole)
    assert max(answered, judged) == highest <= 1
    assert max(sufficiency, judged) <= risen <= 1


@given(UNIT, UNIT, UNIT, UNIT)
def test_a_rejection_never_raises(answered: float, sufficiency: float, gain: float, judged: float) -> None:
    highest, risen = update_one(answered, sufficiency, 0.0, gain, judged, True)
    assert 0 <= highest <= answered
    assert 0 <= risen <= sufficiency
