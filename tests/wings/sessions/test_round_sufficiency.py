"""What is looked at of a session's pool after a round."""

import math

import pytest

from engram.wings.sessions.core.round_sufficiency import MOST_LOG_ODDS, features


def test_features_of_an_evidence_pool() -> None:
    assert features(0.5, 0.4, 0.75, 0.25).tolist() == [1.0, 0.5, 0.4, pytest.approx(math.log(3)), 0.25]
    assert features(1.0, 0.4, None, None).tolist() == [1.0, 1.0, 0.4, 0.0, 0.0]
    assert [features(1.0, 0.4, own, 1.0)[3] for own in (0.0, 1e-9, 1 - 1e-9, 1.0)] == [
        -MOST_LOG_ODDS,
        -MOST_LOG_ODDS,
        MOST_LOG_ODDS,
        MOST_LOG_ODDS,
    ]
