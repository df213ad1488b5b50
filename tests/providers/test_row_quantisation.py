"""Scales of weights, and smoothing."""

import numpy as np

from engram.providers.embedder.row_quantisation import compute_smoothing_factors, quantise_weights

WEIGHTS = np.random.default_rng(0).standard_normal((7, 50)).astype(np.float32)


class TestQuantisedWeights:
    def test_a_weight_is_off_by_half_a_scale_at_most(self) -> None:
        numbers, scales = quantise_weights(WEIGHTS)
        assert (numbers.shape, numbers.dtype, scales.shape) == ((50, 7), np.int8, (7,))
        assert (np.abs(numbers.T * scales[:, None] - WEIGHTS) <= scales[:, None] / 2 + 1e-6).all()
        assert (np.abs(numbers).max(axis=0) == 127).all()

    def test_an_output_without_weights_is_zero(self) -> None:
        numbers, scales = quantise_weights(np.zeros((2, 3), dtype=np.float32))
        assert not numbers.any()
        assert not scales.any()


class TestSmoothingFactors:
    def test_a_large_channel_is_divided_by_more(self) -> None:
        ranges = np.ones(50, dtype=np.float32)
        ranges[3] = 100
        factors = compute_smoothing_factors(ranges, np.ones((7, 50), dtype=np.float32))
        assert np.argmax(factors) == 3
        assert 1 < factors[3] < 100
        np.testing.assert_allclose(np.delete(factors, 3), 1)

    def test_the_product_stays(self) -> None:
        inputs = np.random.default_rng(1).standard_normal((4, 50)).astype(np.float32)
        factors = compute_smoothing_factors(np.abs(inputs).max(axis=0), WEIGHTS)
        np.testing.assert_allclose((inputs / factors) @ (WEIGHTS * factors).T, inputs @ WEIGHTS.T, atol=1e-4)

    def test_it_lowers_the_error_of_rounding_with_outliers(self) -> None:
        inputs = np.random.default_rng(1).standard_normal((200, 50)).astype(np.float32)
        inputs[:, 3] *= 60
        factors = compute_smoothing_factors(np.abs(inputs).max(axis=0), WEIGHTS)

        def error(values: np.ndarray, weights: np.ndarray) -> float:
            scales = np.abs(values).max(axis=1, keepdims=True) / 127
            numbers, by_output = quantise_weights(weights)
            product = (np.round(values / scales) @ numbers) * scales * by_output
            return float(np.abs(product - inputs @ WEIGHTS.T).mean())

        assert error(inputs / factors, WEIGHTS * factors) < 0.7 * error(inputs, WEIGHTS)

    def test_unused_channels_keep_their_size(self) -> None:
        weights = WEIGHTS.copy()
        weights[:, 1] = 0
        ranges = np.full(50, 2, dtype=np.float32)
        ranges[0] = 0
        factors = compute_smoothing_factors(ranges, weights)
        assert factors[:2].tolist() == [1, 1]
        assert np.isfinite(factors).all()
        assert compute_smoothing_factors(np.zeros(50, dtype=np.float32), WEIGHTS).tolist() == [1] * 50
