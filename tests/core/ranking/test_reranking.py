"""A reranker's scores as log odds, and the trust in them that verdicts teach."""

import numpy as np
import pytest

from engram.core.ranking.reranking import MOST_LOG_ODDS, TRUST, RerankedScores, features, to_log_odds, trust_prior
from engram.core.ranking.weight_beliefs import CandidateComparison, observe, posterior


def test_relevances_become_log_odds_and_stay_within_bounds() -> None:
    assert to_log_odds([0.5, 0.75, 0.25]) == pytest.approx([0.0, np.log(3.0), -np.log(3.0)])
    assert to_log_odds([0.0, 1.0]) == [-MOST_LOG_ODDS, MOST_LOG_ODDS]
    assert to_log_odds([]) == []


def test_scores_outside_of_relevances_are_log_odds_already() -> None:
    assert to_log_odds([0.5, -2.0, 40.0]) == [0.5, -2.0, MOST_LOG_ODDS]


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_a_score_that_is_not_finite_is_refused(score: float) -> None:
    with pytest.raises(ValueError, match="not finite"):
        to_log_odds([0.5, score])


def test_unread_passages_get_the_lowest_reranker_score() -> None:
    both = features(np.array([3.0, 2.0, 1.0]), [7, 8, 9], {8: -1.0, 7: 2.0})
    assert both.tolist() == [[3.0, 2.0], [2.0, -1.0], [1.0, -1.0]]
    scores = RerankedScores("p", both, 0.5)
    assert scores.added.tolist() == [1.0, -0.5, -0.5]
    assert scores.reorder(np.array([2, 0])).log_odds.tolist() == [-1.0, 2.0]


@pytest.mark.parametrize(("supported", "sign"), [(0, 1), (5, -1)], ids=["for the reranker", "against it"])
def test_verdicts_move_the_trust_and_leave_the_rankings_own_weight(supported: int, sign: int) -> None:
    both = features(np.zeros(6), range(6), dict(enumerate([4.0, 0.0, 0.0, 0.0, 0.0, -4.0])))
    mask = np.arange(6) == supported
    seen = observe(CandidateComparison(both, mask, 0.5), trust_prior())
    assert seen is not None
    total = seen.evidence
    for _ in range(9):
        total = total + seen.evidence
    own, trust = posterior(trust_prior(), total).mean
    assert own == pytest.approx(1.0, abs=1e-3)
    assert sign * (trust - TRUST) > 0.02
