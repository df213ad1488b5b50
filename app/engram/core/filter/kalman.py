"""The gain-adaptive update of a memory (GAM-RAG, section 3.3, Eqs. 10-13).

A memory is a vector with one scalar uncertainty, its perplexity. A verdict observes the memory along the
question's direction only, so the filter is one-dimensional: it moves the memory along that direction and
leaves everything orthogonal to it alone.

All arithmetic is float64 and row by row, so a result does not depend on which rows are updated together: a batch of
verdicts and a replay come to the same bits.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MemoryUpdate:
    """Effect of one verdict on ``n`` memories.

    Attributes:
        vectors: updated memories, (n, d), unit length, float32.
        perplexities: posterior perplexity, (n,), in [Q, 1].
        gains: Kalman gain, (n,), in [0, 1); 0 where a cap allows none.
        residuals: verdict minus prediction, (n,), in [-1, 2].
    """

    vectors: NDArray[np.float32]
    perplexities: Floats
    gains: Floats
    residuals: Floats


@dataclass(frozen=True, slots=True)
class SupportUpdate:
    """Effect of one verdict on ``n`` scalar supports; all arrays are (n,)."""

    supports: Floats
    perplexities: Floats
    gains: Floats
    residuals: Floats


def kalman_gain(perplexity: Floats, observation_noise: Floats) -> Floats:
    """Compute the gain by which one verdict moves a memory: K = π / (π + R) (GAM-RAG, Eq. 11).

    Args:
        perplexity: π, (n,), in [0, 1].
        observation_noise: R, (n,), above 0.

    Raises:
        ValueError: an argument is out of its range.
    """
    if not ((perplexity >= 0) & (perplexity <= 1)).all():
        raise ValueError("perplexity must lie in [0, 1]")
    if not ((observation_noise > 0) & (observation_noise < np.inf)).all():
        raise ValueError("observation noise must be positive")
    return perplexity / (perplexity + observation_noise)


def posterior_perplexity(perplexity: Floats, gain: Floats, process_noise: Floats | float) -> Floats:
    """Compute the perplexity after a verdict: clip((1 - K) π + Q) to [0, 1] (GAM-RAG, Eq. 13).

    The process noise Q keeps it from collapsing to 0, so a memory never stops listening.
    """
    noise = np.asarray(process_noise)
    if ((noise < 0) | (noise >= 1)).any():
        raise ValueError("process noise must lie in [0, 1)")
    return np.clip((1.0 - gain) * perplexity + process_noise, 0.0, 1.0)


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
    gains, noise = _cap_gains(kalman_gain(perplexities, observation_noise), process_noise, most)
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


def update_supports(
    supports: Floats,
    perplexities: Floats,
    targets: Floats,
    observation_noise: Floats,
    process_noise: Floats | float,
    *,
    most: Floats | None = None,
) -> SupportUpdate:
    """Apply the same filter to scalars: the support of one question by each sentence.

    Its direction is the question itself, so the prediction is the support and Eq. 16 holds exactly:
    s' = (1 - K) s + K y, which stays in [0, 1]. ``most`` is as in ``update_memories``.
    """
    gains, noise = _cap_gains(kalman_gain(perplexities, observation_noise), process_noise, most)
    residuals = targets - supports
    return SupportUpdate(
        supports=supports + gains * residuals,
        perplexities=posterior_perplexity(perplexities, gains, noise),
        gains=gains,
        residuals=residuals,
    )


def _cap_gains(gains: Floats, process_noise: Floats | float, most: Floats | None) -> tuple[Floats, Floats]:
    """Return the capped gains, and the process noise scaled by the same factor.

    A verdict that may not move a memory must not make it less sure either.
    """
    noise = np.asarray(process_noise)
    if not ((noise > 0) & (noise < 1)).all():
        raise ValueError("process noise must lie in (0, 1)")
    if most is None:
        return gains, np.broadcast_to(np.asarray(process_noise, dtype=np.float64), gains.shape)
    within = np.minimum(gains, most)
    return within, process_noise * np.divide(within, gains, out=np.ones_like(gains), where=gains > 0)


def _lengths(rows: Floats) -> Floats:
    lengths = np.sqrt((rows * rows).sum(axis=1))
    if not ((lengths > 0) & (lengths < np.inf)).all():
        raise ValueError("a vector has no direction")
    return np.asarray(lengths, dtype=np.float64)
