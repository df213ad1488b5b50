"""Fitting logistic models: planted weights come back, corpora count the same, and a prior can be loosened."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from engram.core.ranking.sufficiency import ANSWER_FEATURES, build_observation
from engram.core.ranking.weight_beliefs import WeightBelief, build_empty_evidence, posterior
from engram_evaluation.logistic_fit import (
    calibrate,
    expect_features,
    find_lowest_level,
    fit_logistic,
    loosen_prior,
)

SIZE = len(ANSWER_FEATURES)


class TestFit:
    WEIGHTS = np.array([-3.0, 1.0, -0.5, 0.5, 0.0, 0.5, 0.0, -0.5, 0.0, 0.5, 0.0, -0.5])

    def corpus(self, seed: int, count: int = 400) -> tuple[np.ndarray, np.ndarray]:
        draw = np.random.default_rng(seed)
        rows = np.column_stack([np.ones(count), draw.normal(3.0, 2.0, (count, SIZE - 1))])
        return rows, draw.random(count) < 1 / (1 + np.exp(-rows @ self.WEIGHTS))

    def test_it_finds_the_weights_that_made_the_answers(self) -> None:
        found = fit_logistic([self.corpus(0, 4000), self.corpus(1, 4000)], 1e-4, 60.0)
        assert_allclose(found.mean, self.WEIGHTS, atol=0.25)

    def test_the_precision_is_the_curvature_of_so_many_verdicts(self) -> None:
        rows, enough = self.corpus(2)
        found = fit_logistic([(rows, enough)], 1e-6, 60.0)
        p = 1 / (1 + np.exp(-rows @ found.mean))
        wanted = 60.0 * (rows * (p * (1 - p))[:, None]).T @ rows / len(rows)
        assert_allclose(found.precision, wanted, rtol=1e-3)
        assert_array_equal(found.precision, found.precision.T)

    def test_scales_of_features_make_no_difference(self) -> None:
        rows, enough = self.corpus(3)
        scale = np.array([1.0, 10.0, 0.1, 1.0, 5.0, 1.0, 1.0, 2.0, 1.0, 0.5, 3.0, 1.0])
        one, other = fit_logistic([(rows, enough)], 0.03, 60.0), fit_logistic([(rows * scale, enough)], 0.03, 60.0)
        assert_allclose(other.mean * scale, one.mean, rtol=1e-4, atol=1e-6)

    def test_corpora_count_the_same_whatever_their_size(self) -> None:
        small, large = self.corpus(4, 100), self.corpus(5, 100)
        tenfold = np.tile(large[0], (10, 1)), np.tile(large[1], 10)
        assert_allclose(
            fit_logistic([small, tenfold], 0.03, 60.0).mean,
            fit_logistic([small, large], 0.03, 60.0).mean,
            rtol=1e-6,
        )

    def test_expected_features_score_as_a_fit_without_them(self) -> None:
        draw = np.random.default_rng(8)
        rows, _ = self.corpus(8, 4000)
        rows[:, 9] = 0.5 * rows[:, 1] - 0.3 * rows[:, 2] + draw.normal(0.0, 0.3, len(rows))
        enough = draw.random(len(rows)) < 1 / (1 + np.exp(-rows @ self.WEIGHTS))
        found, others = fit_logistic([(rows, enough)], 1e-6, 60.0), np.arange(SIZE) != 9
        without = fit_logistic([(rows[:, others], enough)], 1e-6, 60.0)
        filled = np.where(others, rows, 0.0)
        filled[:, 9] = filled @ expect_features(found.precision, [9])[0]
        wanted = rows[:, others] @ without.mean
        assert_allclose(filled @ found.mean, wanted, atol=0.25)
        assert np.abs(rows[:, others] @ found.mean[others] - wanted).max() > 1.0

    @pytest.mark.parametrize("enough", [True, False])
    def test_fit_refuses_answers_of_one_class(self, enough: bool) -> None:
        rows, _ = self.corpus(6)
        with pytest.raises(ValueError, match="nothing to tell apart"):
            fit_logistic([(rows, np.full(len(rows), enough))], 0.03, 60.0)
        with pytest.raises(ValueError, match="nothing to tell apart"):
            fit_logistic([], 0.03, 60.0)

    def test_answers_that_a_line_tells_apart_have_finite_weights(self) -> None:
        rows, _ = self.corpus(7)
        found = fit_logistic([(rows, rows[:, 1] > 3.0)], 0.03, 60.0)
        assert np.isfinite(found.mean).all()
        assert np.linalg.eigvalsh(found.precision).min() > 0


class TestLoosened:
    PRIOR = WeightBelief(np.linspace(-1, 1, SIZE), 60.0 * np.eye(SIZE))

    def test_loosened_prior_has_the_given_extra_variance(self) -> None:
        loose = loosen_prior(self.PRIOR, 0.5, 0.25)
        mean, first = self.PRIOR.mean, np.eye(SIZE)[0]
        wanted = np.eye(SIZE) / 60.0 + 0.5 * np.outer(first, first) + 0.25 * np.outer(mean, mean)
        assert_allclose(np.linalg.inv(loose.precision), wanted, rtol=1e-9, atol=1e-12)
        assert_array_equal(loose.precision, loose.precision.T)
        assert_array_equal(loose.mean, mean)
        assert_allclose(loosen_prior(self.PRIOR, 0.0, 0.0).precision, self.PRIOR.precision, rtol=1e-9, atol=1e-9)

    def test_verdicts_move_how_often_before_which(self) -> None:
        """Ten answers that were not enough, all alike: the bias takes most of it."""
        x = np.append(1.0, np.full(SIZE - 1, 0.1))
        moved = {}
        for name, prior in (("tight", self.PRIOR), ("loose", loosen_prior(self.PRIOR, 0.5, 0.0))):
            seen = sum(
                (build_observation(x, 0, prior, 0.5).evidence for _ in range(10)), build_empty_evidence(SIZE)
            )
            moved[name] = posterior(prior, seen).mean - prior.mean
        assert moved["loose"][0] < 3 * moved["tight"][0] < 0
        assert np.abs(moved["loose"][1:]).max() < np.abs(moved["tight"][1:]).max()

    def test_what_cannot_be_is_refused(self) -> None:
        for bias, slope in ((-1.0, 0.0), (0.0, -1.0)):
            with pytest.raises(ValueError, match="negative"):
                loosen_prior(self.PRIOR, bias, slope)


class TestCalibrated:
    def test_shift_and_scale_are_found(self) -> None:
        """Answers whose log odds are 0.5 x - 1 by a model that says 2 x."""
        draw = np.random.default_rng(0)
        rows = np.column_stack([np.ones(20_000), draw.normal(0.0, 2.0, 20_000)])
        enough = draw.random(20_000) < 1.0 / (1.0 + np.exp(1.0 - 0.5 * rows[:, 1]))
        calibrated = calibrate(WeightBelief(np.array([0.0, 2.0]), np.eye(2)), [(rows, enough)])
        assert_allclose(calibrated.mean, [-1.0, 0.5], atol=0.05)
        assert_array_equal(calibrated.precision, np.eye(2))

    def test_level_is_the_lowest_of_the_corpora(self) -> None:
        odds = [np.arange(19.0), np.arange(19.0) - 1.0]
        corpora = [(np.column_stack([np.ones(19), one]), np.ones(19, dtype=bool)) for one in odds]
        # The second lowest of 19 has 2 / 20 of further answers below it: 1 and 0 in log odds.
        assert find_lowest_level(np.array([0.0, 1.0]), corpora) == 0.5
