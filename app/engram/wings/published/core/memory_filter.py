"""The gain-adaptive update of a memory (GAM-RAG, section 3.3, Eqs. 10-13).

A verdict observes the memory along the question's direction only, so the filter is one-dimensional: it moves the
memory along that direction and leaves everything orthogonal to it alone.

All arithmetic is float64 and row by row, so a result does not depend on which rows are updated together: a batch of
verdicts and a replay come to the same bits.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.core.learning.kalman import Floats, StateUpdate, cap_gains, kalman_gain, posterior_perplexity


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUpdate(StateUpdate):
    """Effect of one verdict on ``n`` memories.

    Attributes:
        vectors: updated memories, (n, d), unit length, float32.
    """

    vectors: NDArray[np.float32]


def update_memories(
    vectors: NDArray[np.floating],
    perplexities: Floats,
    directions: Floats,
    targets: Floats,
    observation_noise: Floats,
    process_noise: Floats | float,
    *,
    most: Floats | None = None,
) -> MemoryUpdate:
    """Apply one verdict per memory along its question's direction (Eqs. 10-13), and normalise the memories.

    The paper states unit-length memories (Appendix A, Eq. 15). The recursion that it proves, s' = (1 - K) s + K y
    (Eq. 16), holds for the inner product of the memory before it is normalised.

    Args:
        vectors: memories, (n, d), none of them zero.
        perplexities: π, (n,), in [0, 1].
        directions: question of each memory as a unit vector, see ``normalise_directions``, (n, d), or (1, d) if all
            have the same question.
        targets: y, (n,), 1 for supporting, 0 otherwise.
        observation_noise: R, (n,), above 0.
        process_noise: Q, in (0, 1): one, or (n,) where they differ.
        most: largest gain allowed, (n,), in [0, 1]; None: any. A memory of which it is 0 stays to the bit.

    Raises:
        ValueError: shapes do not agree, a vector is zero, or a value is out of its range.
    """
    memory = np.ascontiguousarray(vectors, dtype=np.float64)
    count = memory.shape[:1]
    if memory.ndim != 2 or directions.shape not in (memory.shape, (1, *memory.shape[1:])):
        raise ValueError("memories must be (n, d) and the directions (1, d) or (n, d)")
    if not (perplexities.shape == targets.shape == observation_noise.shape == count):
        raise ValueError("perplexities, targets and observation noise must be (n,)")
    predictions = (memory * directions).sum(axis=1) / _lengths(memory)
    residuals = targets - predictions
    gains, noise = cap_gains(kalman_gain(perplexities, observation_noise), process_noise, most)
    updated = memory + (gains * residuals)[:, None] * directions
    updated /= _lengths(updated)[:, None]
    if most is not None and not most.all():
        updated = np.where((most > 0)[:, None], updated, memory)
    return MemoryUpdate(
        vectors=updated.astype(np.float32),
        perplexities=posterior_perplexity(perplexities, gains, noise),
        gains=gains,
        residuals=residuals,
    )


def normalise_directions(directions: NDArray[np.floating]) -> Floats:
    """Scale directions, (n, d), to unit length.

    Raises:
        ValueError: one is zero.
    """
    rows = np.ascontiguousarray(directions, dtype=np.float64)  # another layout is summed up in another order
    return rows / _lengths(rows)[:, None]


def _lengths(rows: Floats) -> Floats:
    lengths = np.sqrt((rows * rows).sum(axis=1))
    if not ((lengths > 0) & (lengths < np.inf)).all():
        raise ValueError("a vector has no direction")
    return np.asarray(lengths, dtype=np.float64)
