"""The gain-adaptive update of a state (GAM-RAG, section 3.3, Eqs. 10-13).

A state has one scalar uncertainty, its perplexity. The core's are scalars, the support of a question by a sentence;
those of wing ``published`` are vectors.

All arithmetic is float64 and row by row, so a result does not depend on which rows are updated together: a batch of
verdicts and a replay come to the same bits.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class StateUpdate:
    """Effect of one verdict on ``n`` states; arrays are (n,).

    Attributes:
        perplexities: posterior perplexity, in [Q, 1].
        gains: Kalman gain, in [0, 1); 0 where a cap allows none.
        residuals: verdict minus prediction, in [-1, 2].
    """

    perplexities: Floats
    gains: Floats
    residuals: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportUpdate(StateUpdate):
    """Effect of one verdict on ``n`` scalar supports, (n,)."""

    supports: Floats


def kalman_gain(perplexity: Floats, observation_noise: Floats) -> Floats:
    """Compute the gain by which one verdict moves a state: K = π / (π + R) (GAM-RAG, Eq. 11).

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

    The process noise Q keeps it from collapsing to 0, so a state never stops listening.
    """
    noise = np.asarray(process_noise)
    if ((noise < 0) | (noise >= 1)).any():
        raise ValueError("process noise must lie in [0, 1)")
    return np.clip((1.0 - gain) * perplexity + process_noise, 0.0, 1.0)


def update_supports(
    supports: Floats,
    perplexities: Floats,
    targets: Floats,
    observation_noise: Floats,
    process_noise: Floats | float,
    *,
    most: Floats | None = None,
) -> SupportUpdate:
    """Apply one verdict to scalars: the support of one question by each sentence.

    The direction is the question itself, so the prediction is the support and Eq. 16 holds exactly:
    s' = (1 - K) s + K y, which stays in [0, 1].

    Args:
        supports: s, (n,), in [0, 1].
        perplexities: π, (n,), in [0, 1].
        targets: y, (n,), 1 for supporting, 0 otherwise.
        observation_noise: R, (n,), above 0.
        process_noise: Q, in (0, 1): one, or (n,) where they differ.
        most: largest gain allowed, (n,), in [0, 1]; None: any.
    """
    gains, noise = cap_gains(kalman_gain(perplexities, observation_noise), process_noise, most)
    residuals = targets - supports
    return SupportUpdate(
        supports=supports + gains * residuals,
        perplexities=posterior_perplexity(perplexities, gains, noise),
        gains=gains,
        residuals=residuals,
    )


def cap_gains(gains: Floats, process_noise: Floats | float, most: Floats | None) -> tuple[Floats, Floats]:
    """Return the capped gains, and the process noise scaled by the same factor.

    A verdict that may not move a state must not make it less sure either.
    """
    noise = np.asarray(process_noise)
    if not ((noise > 0) & (noise < 1)).all():
        raise ValueError("process noise must lie in (0, 1)")
    if most is None:
        return gains, np.broadcast_to(np.asarray(process_noise, dtype=np.float64), gains.shape)
    within = np.minimum(gains, most)
    return within, process_noise * np.divide(within, gains, out=np.ones_like(gains), where=gains > 0)
