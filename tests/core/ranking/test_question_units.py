"""Standard units of a collection's questions: the same nearness whatever the encoder and the subject."""

import numpy as np
import pytest
from numpy.typing import NDArray

from engram.core.ranking import question_units
from engram.core.ranking.question_units import QuestionUnits

Vectors = NDArray[np.float64]
DIMENSION = 48


def draw_vectors(count: int, seed: int, common: float = 0.0) -> Vectors:
    """Unit vectors in all directions, with a share of their length in a common one."""
    vectors = np.random.default_rng(seed).normal(size=(count, DIMENSION))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return squeeze(vectors, common)


def squeeze(vectors: Vectors, common: float) -> Vectors:
    """Make all vectors alike: the cosine c of two becomes common + (1 - common) c."""
    return np.column_stack([np.sqrt(1 - common) * vectors, np.full(len(vectors), np.sqrt(common))])


def measure_units(passages: NDArray[np.float64], questions: NDArray[np.float64]) -> QuestionUnits:
    return question_units.measure_units(question_units.measure_passages(passages), questions)


@pytest.mark.parametrize("common", [0.3, 0.75, 0.95])
def test_squeezing_the_space_changes_no_nearness(common: float) -> None:
    passages, questions = draw_vectors(60, 1), draw_vectors(30, 2)
    asked, past = draw_vectors(8, 3), draw_vectors(8, 4)

    def measure(share: float) -> NDArray[np.float64]:
        units = measure_units(squeeze(passages, share), squeeze(questions, share))
        one, other = squeeze(asked, share), squeeze(past, share)
        return units.standardise((one * other).sum(axis=1), one @ units.centre, other @ units.centre)

    assert measure(common) == pytest.approx(measure(0.0), abs=1e-6)


def test_nearness_is_in_standard_units_of_pairs_of_questions() -> None:
    questions = draw_vectors(400, 5)
    units = measure_units(draw_vectors(400, 6), questions)
    rows, columns = np.triu_indices(len(questions), 1)
    along = questions @ units.centre
    nearness = units.standardise((questions @ questions.T)[rows, columns], along[rows], along[columns])

    # 400 of 410 parts are measured on pairs of questions, the rest on pairs of passages.
    assert (nearness.mean(), nearness.std()) == pytest.approx((0.0, 1.0), abs=0.05)


def test_pairs_of_passages_stand_for_questions_that_nobody_asked() -> None:
    passages = draw_vectors(50, 7, 0.4)
    units = measure_units(passages, np.zeros((0, 0)))

    assert units.mean == pytest.approx(0.0, abs=0.05)
    assert 0.0 < units.deviation < 1.0
    assert measure_units(passages[:1], np.zeros((0, 0))).deviation == 1.0
    with pytest.raises(ValueError, match="there is none"):
        question_units.measure_passages(np.zeros((0, 0)))


def test_units_of_a_question_in_another_language_are_its_own() -> None:
    units = QuestionUnits(np.zeros(2), 0.0, 1.0)
    angles = np.linspace(1.2, 1.5, 12)
    foreign = np.column_stack([np.cos(angles), np.sin(angles)])
    question = np.array([1.0, 0.0])

    adapted = units.fit_to_other_languages(question, foreign)

    others = np.arctanh(np.cos(angles[1:]))  # the nearest is left out
    assert (adapted.mean, adapted.deviation) == pytest.approx((others.mean(), others.std()))
    assert units.fit_to_other_languages(question, foreign[:10]) is units
