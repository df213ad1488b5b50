"""Contrasts: what makes two near questions different, and how much that counts in a collection."""

import numpy as np
import pytest

from engram.core.ranking.question_contrasts import (
    CONTRASTS,
    measure_contrasts,
    name_contrasts,
)
from engram.core.ranking.question_priors import PRIOR_OTHER, PRIOR_SAME

NOTHING = np.zeros((0, len(CONTRASTS)), dtype=np.bool_)
FIGURES = np.array([[name == "figures" for name in CONTRASTS]])


def test_without_judged_pairs_the_priors_count() -> None:
    shares = measure_contrasts(NOTHING, NOTHING)

    assert shares.same == pytest.approx(PRIOR_SAME)
    assert shares.other == pytest.approx(PRIOR_OTHER)
    ratios = shares.compute_log_ratios(FIGURES)[0]
    assert ratios[0] == pytest.approx(np.log(0.03 / 0.3))
    assert ratios[1] == pytest.approx(np.log(0.85 / 0.85))


def test_a_collection_learns_that_a_contrast_means_nothing() -> None:
    """The same pages answer for every year, as in histories of persons."""
    shares = measure_contrasts(np.repeat(FIGURES, 80, axis=0), np.repeat(FIGURES, 80, axis=0))

    assert shares.same[0] == pytest.approx((20 * 0.03 + 80) / 100)
    assert shares.other[0] == pytest.approx((20 * 0.3 + 80) / 100)
    assert shares.compute_log_ratios(FIGURES)[0, 0] == pytest.approx(0.0, abs=0.1)


def test_contrasts_have_names() -> None:
    assert name_contrasts([True, False, True, False, False, True]) == ("figures", "names", "time")
