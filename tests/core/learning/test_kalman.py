"""The gain-adaptive update: worked examples of Eqs. 10-13 and what holds for every support and verdict."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from engram.core.learning.kalman import kalman_gain, posterior_perplexity, update_supports

Floats = NDArray[np.float64]
Q = 0.001
DIMENSION = 5

perplexities = st.floats(0.0, 1.0)
noises = st.floats(0.01, 100.0)
coordinates = st.floats(-1.0, 1.0)
verdicts = st.sampled_from([0.0, 1.0])
vectors = arrays(np.float64, DIMENSION, elements=coordinates).filter(lambda row: float(np.linalg.norm(row)) > 0.1)


def build_array(value: float) -> Floats:
    return np.array([value])


class TestWorkedExamples:
    def test_gain_is_perplexity_over_perplexity_plus_noise(self) -> None:
        assert_allclose(kalman_gain(np.array([1.0, 0.5, 0.0]), build_array(0.5)), [1 / 1.5, 0.5 / 1.0, 0.0])

    def test_perplexity_shrinks_by_the_gain_and_grows_by_the_process_noise(self) -> None:
        assert_allclose(posterior_perplexity(build_array(1.0), build_array(2 / 3), Q), [1 / 3 + 0.001])
        assert_allclose(posterior_perplexity(build_array(1.0), build_array(0.0), Q), [1.0])

    def test_a_support_moves_as_eq_16_says(self) -> None:
        update = update_supports(build_array(0.25), build_array(1.0), build_array(1.0), build_array(0.5), Q)

        assert_allclose(update.supports, [(1 - 2 / 3) * 0.25 + (2 / 3) * 1.0])
        assert_allclose(update.residuals, [0.75])

    @pytest.mark.parametrize(("noise", "activation"), [(0.5, 0.95), (1.0, 0.90)])
    def test_ten_consistent_updates_reach_the_published_activation(self, noise: float, activation: float) -> None:
        perplexity = build_array(1.0)
        for _ in range(10):
            perplexity = posterior_perplexity(perplexity, kalman_gain(perplexity, build_array(noise)), Q)

        assert round(1 - float(perplexity[0]), 2) == activation


class TestProperties:
    @given(st.floats(1e-9, 1.0), noises)
    def test_gain_lies_strictly_between_nothing_and_everything(self, perplexity: float, noise: float) -> None:
        assert 0 < float(kalman_gain(build_array(perplexity), build_array(noise))[0]) < 1

    @given(st.lists(noises, min_size=1, max_size=60), st.floats(1e-6, 0.5))
    def test_perplexity_never_collapses_below_the_process_noise(self, series: list[float], process: float) -> None:
        perplexity = build_array(1.0)
        for noise in series:
            perplexity = posterior_perplexity(perplexity, kalman_gain(perplexity, build_array(noise)), process)
            assert process <= float(perplexity[0]) <= 1.0

    def test_supports_do_not_depend_on_their_batch(self) -> None:
        draw = np.random.default_rng(1)
        supports, perplexity, noise = draw.uniform(size=(3, 17))
        targets = draw.integers(0, 2, 17).astype(float)
        whole = update_supports(supports, perplexity, targets, noise + 0.01, Q)
        for at in range(17):
            row = slice(at, at + 1)
            alone = update_supports(supports[row], perplexity[row], targets[row], noise[row] + 0.01, Q)
            for part in ("supports", "perplexities", "gains", "residuals"):
                assert_array_equal(getattr(whole, part)[row], getattr(alone, part))

    @given(st.floats(0.0, 1.0), perplexities, verdicts, noises)
    def test_supports_stay_between_none_and_full(
        self, support: float, perplexity: float, target: float, noise: float
    ) -> None:
        update = update_supports(
            build_array(support), build_array(perplexity), build_array(target), build_array(noise), Q
        )

        assert 0.0 <= float(update.supports[0]) <= 1.0


class TestRefusals:
    @pytest.mark.parametrize("perplexity", [-0.1, 1.1, float("nan")])
    def test_perplexity_outside_its_range(self, perplexity: float) -> None:
        with pytest.raises(ValueError, match="perplexity"):
            kalman_gain(build_array(perplexity), build_array(0.5))

    @pytest.mark.parametrize("noise", [0.0, -1.0, float("inf"), float("nan")])
    def test_noise_that_is_not_positive(self, noise: float) -> None:
        with pytest.raises(ValueError, match="noise"):
            kalman_gain(build_array(0.5), build_array(noise))

    @pytest.mark.parametrize("process", [0.0, 1.0, -0.1])
    def test_process_noise_outside_its_range(self, process: float) -> None:
        with pytest.raises(ValueError, match="process noise"):
            update_supports(build_array(0.5), build_array(0.5), build_array(1.0), build_array(0.5), process)
