"""What verdicts on sessions teach of pools, by the arithmetic alone."""

import numpy as np
import pytest

from engram.core.ranking.weight_beliefs import WeightBelief
from engram.wings.sessions.core.round_sufficiency import features
from engram_evaluation.taught_rounds import Session, measure_taught

PRIOR = WeightBelief(np.array([2.0, 0.0, 0.0, 0.0, 1.0]), np.eye(5) * 5.0)


def sessions(count: int) -> list[Session]:
    """Of two rounds each; only what is covered in full suffices, and every other session gets that far."""
    ends = [1.0 if at % 2 else 0.5 for at in range(count)]
    return [
        (np.array([features(1.0, 0.5, 0.5, 0.0), features(1.0, 0.5, 0.5, end)]), np.array([False, end == 1.0]))
        for end in ends
    ]


def test_a_prior_that_is_too_sure_is_brought_down_by_verdicts() -> None:
    before, after = measure_taught(PRIOR, sessions(60), [30], draws=3)
    assert (before.verdicts, after.verdicts) == (0, 30)
    assert before.auc == after.auc == 1.0
    # Of four rounds one suffices; the prior tells 0.88 to 0.95 of each.
    assert before.error == pytest.approx(0.65, abs=0.1)
    assert after.error < before.error - 0.2


def test_a_session_that_is_judged_is_not_measured() -> None:
    with pytest.raises(ValueError, match="leave none to measure"):
        measure_taught(PRIOR, sessions(10), [10])
