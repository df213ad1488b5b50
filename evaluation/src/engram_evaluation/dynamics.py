"""Gain and perplexity over repeated verdicts, from the filter alone (GAM-RAG, Figure 3)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engram.core.filter.kalman import kalman_gain, posterior_perplexity

NOISES = (0.1, 0.5, 1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class Dynamics:
    """One memory under verdicts of one reliability.

    Attributes:
        gains: K of each update.
        perplexities: π before the first and after each update, so one longer than ``gains``.
    """

    observation_noise: float
    gains: tuple[float, ...]
    perplexities: tuple[float, ...]


def dynamics(updates: int, process_noise: float, observation_noises: Sequence[float] = NOISES) -> list[Dynamics]:
    """A fresh memory (π = 1) under ``updates`` verdicts, for each observation noise R."""
    courses = []
    for noise in observation_noises:
        perplexities = [1.0]
        gains = []
        for _ in range(updates):
            before = np.array([perplexities[-1]])
            gain = kalman_gain(before, np.array([noise]))
            gains.append(float(gain[0]))
            perplexities.append(float(posterior_perplexity(before, gain, process_noise)[0]))
        courses.append(Dynamics(noise, tuple(gains), tuple(perplexities)))
    return courses
