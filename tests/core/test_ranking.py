"""The passage rankings: Eq. 8, and the weighted features."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.ranking import FeatureWeights, best, passage_scores, weighted_scores


def test_score_adds_prior_and_discounted_logarithms() -> None:
    scores = passage_scores({1: 0.8, 2: 0.5}, [{1: 0.6}, {1: 0.4, 3: 0.2}], 0.01)

    assert scores == {
        1: pytest.approx(0.01 * 0.8 + math.log(1.6) / 1 + math.log(1.4) / 2),
        2: pytest.approx(0.01 * 0.5),
        3: pytest.approx(math.log(1.2) / 2),
    }


@pytest.mark.parametrize("bonus", [-1.0, -2.5])
def test_a_bonus_without_a_logarithm_is_refused(bonus: float) -> None:
    with pytest.raises(ValueError, match="above -1"):
        passage_scores({}, [{1: bonus}], 0.01)


def test_the_best_come_first_and_equal_scores_in_id_order() -> None:
    assert best({5: 0.5, 2: 0.5, 9: 0.75, 1: 0.25}, 3) == [(9, 0.75), (2, 0.5), (5, 0.5)]


@given(st.dictionaries(st.integers(0, 99), st.integers(0, 5).map(float)), st.integers(0, 20))
def test_ranking_does_not_depend_on_the_order_of_scores(scores: dict[int, float], limit: int) -> None:
    backwards = dict(reversed(scores.items()))

    assert best(backwards, limit) == best(scores, limit)
    assert len(best(scores, limit)) == min(limit, len(scores))


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_larger_bonus_never_ranks_lower(smaller: float, more: float) -> None:
    scores = passage_scores({1: 0.5, 2: 0.5}, [{1: smaller, 2: smaller + more}], 0.01)

    assert scores[2] >= scores[1]


def test_features_add_up() -> None:
    scores = weighted_scores(
        {1: 0.6, 2: 0.5, 3: 0.4}, {1: 0.5, 2: 1.0}, {2, 3}, FeatureWeights(similarity=1.0, titled=0.25, rank=2.0)
    )

    assert scores == {1: 0.6 + 2 * 0.5, 2: 0.5 + 0.25 + 2 * 1.0, 3: 0.4 + 0.25}


def test_a_passage_that_was_only_reached_is_not_ranked_unless_its_key_is_known() -> None:
    assert weighted_scores({}, {7: 1.0}, {7}, FeatureWeights()) == {}
