"""What an answer states after judges denied it, in collections whose log odds lie elsewhere."""

import numpy as np
import pytest

from engram.core.ranking.withholding_level import calibrate
from engram.services.question.sufficiency import SufficiencyEstimate

LEVEL = 0.45


def build_estimate(uncalibrated: float, midpoint: float, remembered: float = 0.0) -> SufficiencyEstimate:
    return SufficiencyEstimate(
        uncalibrated=uncalibrated,
        midpoint=midpoint,
        vouched=0.0,
        features=np.zeros(0),
        weights=np.zeros(0),
        events=0,
        undenied=1.0,
        remembered=remembered,
    )


@pytest.mark.parametrize("midpoint", [-2.0, 0.0, 1.5, 3.0])
@pytest.mark.parametrize(("undenied", "withheld"), [(1.0, False), (0.6, False), (0.37, True)])
def test_a_denied_answer_falls_below_the_level_wherever_the_midpoint_lies(
    midpoint: float, undenied: float, withheld: bool
) -> None:
    stated = build_estimate(0.92, midpoint).state(undenied)
    assert (stated < calibrate(LEVEL, midpoint)) is withheld


def test_without_a_midpoint_a_denial_multiplies() -> None:
    assert build_estimate(0.9, 0.0).state(0.5) == 0.45
    assert build_estimate(0.0, 1.0).state(0.5) == 0.0


def test_what_verdicts_remember_is_not_calibrated() -> None:
    assert build_estimate(0.5, 2.0, remembered=0.8).state(0.5) == pytest.approx(0.4)
