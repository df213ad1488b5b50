"""Dense layers in eight bits: scales of weights, and the smoothing that makes activations easy to round.

A few channels of an encoder's activations are ten times as large as the others. Rounded together with them, the
others keep few bits. SmoothQuant (Xiao et al. 2023) divides each channel of the activations by a factor and
multiplies the weights that read it by the same one, so that the layer's result stays.
"""

import numpy as np
from numpy.typing import NDArray

MOST_INT8 = 127
"""Largest number that stands for a weight; the least is its negative."""
SMOOTHING = 0.65
"""Share of a channel's range that moves from activations to weights, 0 to 1."""


def quantise_weights(weights: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Round weights, (n, k), to whole numbers, (k, n), with one scale for each output, (n,).

    A weight is number times scale, off by half a scale at most. The scale is the output's largest weight over 127.
    """
    scales = np.abs(weights).max(axis=1) / np.float32(MOST_INT8)
    divisors = np.where(scales > 0, scales, np.float32(1))
    return np.ascontiguousarray(np.round(weights / divisors[:, None]).astype(np.int8).T), scales


def compute_smoothing_factors(ranges: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Factors, (k,), to divide the channels of a layer's input by and to multiply its weights with.

    Args:
        ranges: largest absolute value of each input channel, (k,).
        weights: (n, k).

    Returns:
        positive factors with median 1. A channel that is always 0, or that no weight reads, keeps its size.
    """
    read = np.abs(weights).max(axis=0)
    factors = np.ones_like(ranges)
    used = (ranges > 0) & (read > 0)
    factors[used] = ranges[used] ** SMOOTHING / read[used] ** (1 - SMOOTHING)
    factors[used] /= np.median(factors[used]) if used.any() else 1
    return factors.astype(np.float32)
