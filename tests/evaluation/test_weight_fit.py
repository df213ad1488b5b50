"""The ridge of a fit, by the number of questions."""

import pytest

from engram_evaluation.weight_fit import RIDGE, RIDGE_QUESTIONS, ridge


@pytest.mark.parametrize("questions", [RIDGE_QUESTIONS, RIDGE_QUESTIONS + 1, 10 * RIDGE_QUESTIONS])
def test_enough_questions_need_the_plain_ridge(questions: int) -> None:
    assert ridge(questions) == RIDGE


@pytest.mark.parametrize("questions", [1, 15, RIDGE_QUESTIONS // 2])
def test_few_questions_weigh_as_much_against_the_ridge_as_many(questions: int) -> None:
    assert ridge(questions) * questions == pytest.approx(RIDGE * RIDGE_QUESTIONS)


def test_a_fit_to_nothing_has_a_ridge() -> None:
    assert ridge(0) == ridge(1) > 0
