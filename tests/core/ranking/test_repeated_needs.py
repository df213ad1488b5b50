"""Repeated needs: asked questions without verdicts show how often judged needs are asked again."""

import numpy as np
import pytest

from engram.core.ranking.question_priors import PRIOR_SHARE
from engram.core.ranking.repeated_needs import build_features, learn_repeated_needs
from engram.core.ranking.weight_beliefs import sigmoid


def draw(count: int, same: int, seed: int = 0) -> np.ndarray:
    """Pairs of which the first ``same`` have the same need: these are nearer, and lead by more."""
    random = np.random.default_rng(seed)
    equal = np.arange(count) < same
    return build_features(
        random.normal(3.0, 1.0, count) + 2.5 * equal,
        random.exponential(0.5, count) + 1.5 * equal,
        np.abs(random.normal(0.0, 0.15, count)) + 0.3 * equal,
        np.zeros(count),
    )


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9])
def test_the_share_of_repeated_needs_is_found_without_labels(share: float) -> None:
    same = int(200 * share)
    needs = learn_repeated_needs(draw(80, 0), draw(200, same, seed=1))
    said = sigmoid(needs.compute_log_odds(draw(200, same, seed=2)))

    assert needs.share == pytest.approx(share, abs=0.1)
    assert needs.least_share < needs.share
    assert said.mean() == pytest.approx(share, abs=0.1)
    assert same == 0 or said[:same].mean() > said[same:].mean() + 0.5


def test_before_anything_is_asked_the_prior_holds() -> None:
    needs = learn_repeated_needs(draw(80, 0), draw(0, 0))
    near, far = needs.compute_log_odds(
        build_features(np.array([9.0, 3.0]), np.array([4.0, 0.5]), np.array([0.5, 0.1]), np.zeros(2))
    )

    assert needs.share == pytest.approx(PRIOR_SHARE)
    assert far < -2 < 2 < near


def test_a_few_asked_questions_teach_little() -> None:
    assert learn_repeated_needs(draw(80, 0), draw(2, 2)).least_share < 0.2


def test_words_of_two_languages_count_as_none_in_common() -> None:
    one = np.ones(1)
    absent, none = (build_features(one, one, np.array([words]), one) for words in (np.nan, 0.0))
    assert (absent == none).all()
