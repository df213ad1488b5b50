"""Weights in eight bits: a quarter of what a layer reads, and reading takes the time where texts come singly."""

import numpy as np
from numpy.typing import NDArray

BLOCK = 32
"""Weights that share a scale. Inputs are rounded by blocks of the same size, as a layer is computed."""
ZERO = 128
"""The number that stands for a weight of 0."""


def round_weights(weights: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Weights, (n, k), as whole numbers, (n, b, BLOCK), and the scale of each block, (n, b), b = ceil(k / BLOCK).

    A weight is (number - ZERO) * scale, off by half a scale at most, which is the block's largest over 127. This is
    the layout of onnxruntime's operator MatMulNBits.
    """
    outputs, inputs = weights.shape
    blocks = -(-inputs // BLOCK)
    padded = np.zeros((outputs, blocks * BLOCK), dtype=np.float32)
    padded[:, :inputs] = weights
    parts = padded.reshape(outputs, blocks, BLOCK)
    scales = np.abs(parts).max(axis=2) / np.float32(127)
    divisors = np.where(scales > 0, scales, np.float32(1))[:, :, None]
    return (np.round(parts / divisors) + ZERO).astype(np.uint8), scales
