"""Whether a session's pool is enough after a round, and what a verdict on the session says of that."""

import math

import numpy as np
import pytest

from engram.core.filter.logged_verdict import JudgedRound, LoggedVerdict
from engram.core.ranking.sufficiency import build_observation, probability
from engram.core.ranking.weight_beliefs import WeightBelief, posterior
from engram.wings.sessions.core.round_sufficiency import MOST_LOG_ODDS, ROUND_FEATURES, features, observe_verdict

PRIOR = WeightBelief(np.array([-1.0, 0.5, 2.0, 0.3, 1.0]), np.eye(len(ROUND_FEATURES)))
FIRST = tuple(features(0.5, 0.4, 0.6, 0.5).tolist())
SECOND = tuple(features(1.0, 0.7, 0.6, 1.0).tolist())
ROUNDS = (JudgedRound(FIRST, (1, 2)), JudgedRound(SECOND, (3,)))
NAMED_SENTENCES = [(1, 1), (3, 1)]
"""Passages 1 and 3 hold the evidence: the pool has 3 since the second round."""


def verdict(*rounds: JudgedRound, **said: bool) -> LoggedVerdict:
    return LoggedVerdict(supports=(10, 30), rounds=rounds, **said)  # type: ignore[arg-type]


def test_features_of_an_evidence_pool() -> None:
    assert features(0.5, 0.4, 0.75, 0.25).tolist() == [1.0, 0.5, 0.4, pytest.approx(math.log(3)), 0.25]
    assert features(1.0, 0.4, None, None).tolist() == [1.0, 1.0, 0.4, 0.0, 0.0]
    assert [features(1.0, 0.4, own, 1.0)[3] for own in (0.0, 1e-9, 1 - 1e-9, 1.0)] == [
        -MOST_LOG_ODDS,
        -MOST_LOG_ODDS,
        MOST_LOG_ODDS,
        MOST_LOG_ODDS,
    ]


def test_pool_was_insufficient_before_its_last_evidence() -> None:
    said = observe_verdict(verdict(*ROUNDS), NAMED_SENTENCES, PRIOR, 0.5)
    not_yet, by_then = (build_observation(np.array(seen), y, PRIOR, 0.5) for seen, y in ((FIRST, 0), (SECOND, 1)))
    assert said is not None
    wanted = (not_yet.evidence.information + by_then.evidence.information) / 2
    assert said.evidence.information == pytest.approx(wanted)
    assert said.evidence.precision == pytest.approx((not_yet.evidence.precision + by_then.evidence.precision) / 2)
    assert said.surprise == pytest.approx((not_yet.surprise + by_then.surprise) / 2)
    after = posterior(PRIOR, said.evidence).mean
    assert probability(np.array(FIRST), after) < probability(np.array(FIRST), PRIOR.mean)


def test_a_round_that_teaches_nothing_still_found_what_it_found() -> None:
    silent = JudgedRound((), (1, 2))
    said = observe_verdict(verdict(silent, ROUNDS[1]), NAMED_SENTENCES, PRIOR, 0.5)
    alone = build_observation(np.array(SECOND), 1, PRIOR, 0.5)
    assert said is not None
    assert said.evidence.information == pytest.approx(alone.evidence.information)


def test_verdict_without_a_complete_round_is_no_observation() -> None:
    assert observe_verdict(verdict(), NAMED_SENTENCES, PRIOR, 0.5) is None
    assert observe_verdict(verdict(ROUNDS[1], partial=True), [(3, 1)], PRIOR, 0.5) is None
    assert (
        observe_verdict(verdict(JudgedRound(FIRST[:3], (1, 3))), NAMED_SENTENCES, PRIOR, 0.5) is None
    )  # of other features
    lacking = observe_verdict(verdict(ROUNDS[0], partial=True), NAMED_SENTENCES, PRIOR, 0.5)
    assert lacking is not None
    assert lacking.evidence.information @ np.array(FIRST) < 0
    failed = observe_verdict(verdict(*ROUNDS, retrieval_success=False), NAMED_SENTENCES, PRIOR, 0.5)
    assert failed is not None
    assert failed.evidence.information @ np.array(SECOND) < 0
