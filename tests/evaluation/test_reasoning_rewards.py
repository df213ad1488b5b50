"""Rewards by hand, and what must hold of them whatever the path."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram_evaluation.reasoning_rewards import (
    GRADES,
    OUTCOME,
    PATH,
    compute_grade_value,
    objective,
    outcome_reward,
    outcome_reward_by_gold,
    path_reward,
    path_reward_by_gold,
    play_reward,
    precision,
    share_held,
)

shares = st.floats(0, 1)
sentences = st.sets(st.integers(0, 8))


def test_grades_are_equally_far_apart() -> None:
    assert [compute_grade_value(grade) for grade in GRADES] == pytest.approx([0, 1 / 3, 2 / 3, 1])


def test_a_step_by_hand() -> None:
    graded = {"relevance": "excellent", "sufficiency": "good", "coherence": "fair", "factuality": "poor"}
    assert path_reward(graded) == pytest.approx((1 + 2 / 3 + 1 / 3 + 0) / 4)


def test_an_outcome_with_and_without_gold() -> None:
    without = {"coherence": "excellent", "completeness": "good", "consistency": "excellent"}
    assert outcome_reward(without) == pytest.approx((1 + 2 / 3 + 1) / 3)
    assert outcome_reward({**without, "agreement": "poor"}) == pytest.approx((1 + 2 / 3 + 1 + 0) / 4)


def test_the_objective_by_hand() -> None:
    assert objective([0.5, 1.0, 0.0], 0.75) == pytest.approx((0.5 + 1.0 + 0.0) / 3 + 2 * 0.75)
    assert objective([], 0.75) == 2 * 0.75
    assert objective([0.5], 1.0, weight=0.0) == 0.5


def test_gold_by_hand() -> None:
    assert share_held({1, 2, 3}, [3, 4, 1]) == pytest.approx(2 / 3)
    assert precision({1, 2, 3}, [3, 4, 1, 5]) == 2 / 4
    assert precision({1}, []) == 0.0
    assert path_reward_by_gold({1, 2, 3}, [3, 4, 1, 5]) == pytest.approx((2 / 3 + 2 / 4) / 2)
    assert outcome_reward_by_gold(0.8, 0.5) == pytest.approx(0.5 * 0.8 + 0.5 * 0.5)


@given(gold=st.sets(st.integers(0, 8), min_size=1), memory=sentences, more=sentences)
def test_more_gold_never_lowers_a_step_and_more_noise_never_raises_it(
    gold: set[int], memory: set[int], more: set[int]
) -> None:
    before = path_reward_by_gold(gold, memory)
    assert 0.0 <= before <= 1.0
    assert path_reward_by_gold(gold, memory | (more & gold)) >= before
    assert path_reward_by_gold(gold, memory | (more - gold)) <= before


@given(steps=st.lists(shares, max_size=6), outcome=shares, better=shares)
def test_the_objective_is_bounded_and_grows_with_the_outcome(
    steps: list[float], outcome: float, better: float
) -> None:
    assert 0.0 <= objective(steps, outcome) <= 3.0
    assert objective(steps, max(outcome, better)) >= objective(steps, outcome)
    assert objective(steps[::-1], outcome) == objective(steps, outcome)


@given(st.lists(st.sampled_from(GRADES), min_size=4, max_size=4))
def test_grades_average_to_a_share(grades: list[str]) -> None:
    assert 0.0 <= path_reward(dict(zip(PATH, grades, strict=True))) <= 1.0
    assert 0.0 <= outcome_reward(dict(zip(OUTCOME, grades, strict=True))) <= 1.0


def test_invalid_grades_are_refused() -> None:
    with pytest.raises(ValueError, match="'great'"):
        compute_grade_value("great")
    with pytest.raises(ValueError, match="relevance, sufficiency"):
        path_reward({"relevance": "good"})
    with pytest.raises(ValueError, match="nothing"):
        outcome_reward({})
    with pytest.raises(ValueError, match=r"\[0, 1\]"):
        objective([1.5], 0.0)
    with pytest.raises(ValueError, match="no gold"):
        share_held((), {1})
    with pytest.raises(ValueError, match="weight"):
        outcome_reward_by_gold(0.5, 0.5, 2.0)


def test_a_play_is_worth_its_answer_and_its_form() -> None:
    assert play_reward(0.5, True) == pytest.approx(0.5 + 0.1)
    assert play_reward(0.5, False) == 0.5
    assert play_reward(1.0, True, weight=0.0) == 1.0
    with pytest.raises(ValueError, match="F1"):
        play_reward(1.5, True)
