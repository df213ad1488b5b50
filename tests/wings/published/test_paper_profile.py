"""The published ranking of passages: Eqs. 7 and 8."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.ranking.propagation import Floats, ReachedSentences
from engram.wings.published.core.paper_profile import PAPER, compute_bonuses, score_passages


def reach(*bonuses: tuple[int, float]) -> tuple[ReachedSentences, Floats]:
    """A hop that reached a sentence with this score of each passage."""
    scores = np.array([score for _, score in bonuses])
    passages = np.array([passage for passage, _ in bonuses])
    ones = np.ones(len(scores))
    return ReachedSentences(np.arange(len(scores)), passages, ones, ones, 0 * ones), scores


def test_score_adds_prior_and_discounted_logarithms() -> None:
    scores = score_passages({1: 0.8, 2: 0.5}, [reach((1, 0.6)), reach((1, 0.4), (3, 0.2))])

    assert scores == {
        1: pytest.approx(0.01 * 0.8 + math.log(1.6) / 1 + math.log(1.4) / 2),
        2: pytest.approx(0.01 * 0.5),
        3: pytest.approx(math.log(1.2) / 2),
    }


def test_only_the_best_sentences_of_a_hop_count() -> None:
    few = [(1, 0.4), (2, 0.3), (3, 0.2)]
    assert len(few) == PAPER.sentences_per_hop
    assert score_passages({}, [reach((4, 0.1), *few)]) == score_passages({}, [reach(*few)])


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_larger_bonus_never_ranks_lower(smaller: float, more: float) -> None:
    scores = score_passages({1: 0.5, 2: 0.5}, [reach((1, smaller), (2, smaller + more))])

    assert scores[2] >= scores[1]


def test_a_passage_collects_the_scores_of_its_sentences() -> None:
    bonuses = compute_bonuses(np.array([0.5, 0.25, 0.125]), np.array([7, 8, 7]))

    assert bonuses == {7: 0.5 + 0.125, 8: 0.25}
