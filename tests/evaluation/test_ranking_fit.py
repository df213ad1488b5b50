"""Fitting the prior: planted weights come back, corpora count the same, and the result is a maximum."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from engram.core.ranking.weight_beliefs import Floats
from engram_evaluation.ranking_fit import TOLERANCE, FittedQuestion, fit

PLANTED = np.array([2.0, -1.0, 0.5])
NUMBER = 3000


def choices(seed: int, count: int, weights: Floats = PLANTED, supported: int = 1) -> list[FittedQuestion]:
    """Questions whose supported candidates are drawn with the probabilities that the weights give."""
    draw = np.random.default_rng(seed)
    questions = []
    for _ in range(count):
        features = draw.normal(size=(int(draw.integers(3, 9)), len(weights)))
        odds = np.exp(features @ weights)
        named = draw.choice(len(features), supported, replace=False, p=odds / odds.sum())
        questions.append(FittedQuestion(features, np.isin(np.arange(len(features)), named)))
    return questions


def log_likelihood(questions: list[FittedQuestion], weights: Floats) -> float:
    """Mean over questions of the mean log-probability that a supported one comes before those that are not."""
    values = []
    for question in questions:
        scores = question.features @ weights
        rivals = scores[~question.supported]
        values.append(np.mean([s - np.logaddexp.reduce([s, *rivals]) for s in scores[question.supported]]))
    return float(np.mean(values))


def test_planted_weights_come_back() -> None:
    prior = fit([choices(1, NUMBER)], ridge=1e-6, verdicts=float(NUMBER))

    # The curvature over all questions is their Fisher information: errors in its own units are standard normal.
    error = prior.mean - PLANTED
    assert float(error @ prior.precision @ error) < 16.3  # 99.9% of a chi-square with 3 degrees of freedom
    assert np.abs(error).max() < 0.2


def test_the_result_is_the_maximum_and_its_precision_the_curvature_there() -> None:
    corpora = [choices(2, 40), choices(3, 15, supported=2)]
    ridge, verdicts, step = 0.01, 7.0, 1e-4
    prior = fit(corpora, ridge, verdicts)

    def objective(weights: Floats) -> float:
        means = [log_likelihood(corpus, weights) for corpus in corpora]
        return float(np.mean(means)) - ridge / 2 * float(weights @ weights)

    def slope(weights: Floats) -> Floats:
        return np.array(
            [(objective(weights + step * a) - objective(weights - step * a)) / (2 * step) for a in np.eye(3)]
        )

    def curvature(weights: Floats) -> Floats:
        return np.array([slope(weights - step * a) - slope(weights + step * a) for a in np.eye(3)]) / (2 * step)

    def compute_newton_gain(weights: Floats) -> float:
        """Twice what a Newton step from there would gain."""
        return float(slope(weights) @ np.linalg.solve(curvature(weights), slope(weights)))

    assert compute_newton_gain(prior.mean) < 2 * TOLERANCE
    assert compute_newton_gain(np.zeros(3)) > 0.1
    assert_allclose(prior.precision, verdicts * curvature(prior.mean), rtol=1e-3, atol=1e-4)
    assert_allclose(prior.precision, prior.precision.T, atol=1e-12)
    assert np.linalg.eigvalsh(prior.precision).min() > 0


def test_each_corpus_counts_the_same_whatever_its_size() -> None:
    small, large = choices(4, 20), choices(5, 100, weights=-PLANTED)

    once = fit([small, large], 0.01, 1.0)
    assert_allclose(fit([small * 10, large], 0.01, 1.0).mean, once.mean, atol=1e-6)
    assert_allclose(fit([large, small], 0.01, 1.0).mean, once.mean, atol=1e-6)
    assert np.abs(fit([small * 10 + large], 0.01, 1.0).mean - once.mean).max() > 0.1


def test_more_verdicts_make_the_prior_firmer_and_nothing_else() -> None:
    corpus = [choices(6, 30)]
    weak, firm = fit(corpus, 0.01, 1.0), fit(corpus, 0.01, 60.0)

    assert_allclose(firm.mean, weak.mean)
    assert_allclose(firm.precision, 60.0 * weak.precision)


def test_questions_that_compare_nothing_are_left_out() -> None:
    corpus = choices(7, 30)
    features = corpus[0].features
    idle = [FittedQuestion(features, np.full(len(features), everything)) for everything in (True, False)]
    nobody = FittedQuestion(np.zeros((0, 3)), np.zeros(0, dtype=bool))

    expected = fit([corpus], 0.01, 1.0)
    for found in (fit([corpus + idle + [nobody]], 0.01, 1.0), fit([corpus, idle, []], 0.01, 1.0)):
        assert_allclose(found.mean, expected.mean)
        assert_allclose(found.precision, expected.precision)
    for nothing in ([], [[]], [idle], [[nobody], idle]):
        with pytest.raises(ValueError, match="nothing to compare"):
            fit(nothing, 0.01, 1.0)


def test_choices_that_no_weights_could_miss_stay_finite() -> None:
    """Without the ridge these weights would grow without bound."""
    certain = [FittedQuestion(np.array([[1.0], [-1.0]]), np.array([True, False]))] * 5
    prior = fit([certain], 1e-3, 1.0)

    assert 0 < prior.mean[0] < 20
    assert np.isfinite(prior.precision).all()


def test_features_of_large_scale_are_fitted_too() -> None:
    scaled = [FittedQuestion(question.features * 1000.0, question.supported) for question in choices(8, 200)]

    found = fit([scaled], 1e-9, 1.0).mean * 1000.0
    assert_allclose(found, fit([choices(8, 200)], 1e-9 * 1e6, 1.0).mean, rtol=1e-2)


def test_whole_steps_that_overshoot_are_halved() -> None:
    """With candidates of very different scales whole Newton steps run back and forth for ever."""
    draw = np.random.default_rng(59)
    questions = []
    for _ in range(int(draw.integers(2, 6))):
        count = int(draw.integers(2, 5))
        features = draw.normal(size=(count, 2)) * 10.0 ** draw.integers(-1, 3, size=(count, 1))
        questions.append(FittedQuestion(features, np.arange(count) == draw.integers(count)))

    with np.errstate(all="raise", under="ignore"):
        found = fit([questions], 1e-3, 1.0).mean

    def objective(weights: Floats) -> float:
        return log_likelihood(questions, weights) - 1e-3 / 2 * float(weights @ weights)

    nearby = [
        found + step for scale in (0.1, 0.01) for step in scale * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    ]
    assert objective(found) > max(objective(weights) for weights in [*nearby, np.zeros(2)])
