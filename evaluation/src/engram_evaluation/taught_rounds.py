"""Gain of verdicts on sessions for round sufficiency, by arithmetic alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.sufficiency import build_observation, probability
from engram.core.ranking.weight_beliefs import Floats, WeightBelief, WeightEvidence, build_empty_evidence, posterior
from engram_evaluation.sufficiency_measure import auc, calibration_error

NOISE = 0.5
"""R of a verdict."""
DRAWS = 40

Session = tuple[Floats, NDArray[np.bool_]]
"""Features of the pool after each round, (r, k), and whether it held all the evidence, (r,)."""


@dataclass(frozen=True, slots=True)
class _RoundResult:
    """Predicted and true sufficiency of one round."""

    probability: float
    is_sufficient: bool


@dataclass(frozen=True, slots=True)
class TaughtQuality:
    """Quality of round sufficiency after a number of verdicts on other sessions, as means over the draws.

    Attributes:
        auc: area under the curve; None where no draw has rounds of both kinds.
        error: expected calibration error, 10 bins.
    """

    verdicts: int
    auc: float | None
    error: float


def measure_taught(
    prior: WeightBelief, sessions: Sequence[Session], verdicts: Sequence[int], draws: int = DRAWS
) -> list[TaughtQuality]:
    """Before any verdict and after each of these numbers, on the same sessions, none of which is judged.

    A verdict names all the evidence there is, so that of each round it says whether the pool held it.

    Raises:
        ValueError: there are no more sessions than verdicts.
    """
    most = max(verdicts, default=0)
    if len(sessions) <= most:
        raise ValueError(f"{len(sessions)} sessions leave none to measure after {most} verdicts")
    measured: dict[int, list[tuple[float | None, float]]] = {count: [] for count in (0, *verdicts)}
    for draw in range(draws):
        order = np.random.default_rng(draw).permutation(len(sessions)).tolist()
        held_out = [sessions[at] for at in order[most:]]
        for count, measures in measured.items():
            evidence = (_session_evidence(prior, sessions[at]) for at in order[:count])
            mean = posterior(prior, reduce(add, evidence, build_empty_evidence(len(prior.mean)))).mean
            measures.append(_measure_rounds(mean, held_out))
    return [
        TaughtQuality(
            count,
            float(np.mean(areas)) if (areas := [area for area, _ in measures if area is not None]) else None,
            float(np.mean([error for _, error in measures])),
        )
        for count, measures in measured.items()
    ]


def _session_evidence(prior: WeightBelief, session: Session) -> WeightEvidence:
    """Return the evidence of one verdict; rounds count as shares, see ``round_sufficiency.observe_verdict``."""
    rows, suffices = session
    total = reduce(
        add, (build_observation(row, int(y), prior, NOISE).evidence for row, y in zip(rows, suffices, strict=True))
    )
    return WeightEvidence(total.information / len(rows), total.precision / len(rows))


def _measure_rounds(mean: Floats, sessions: Sequence[Session]) -> tuple[float | None, float]:
    """Return the area under the curve and the calibration error over all rounds of these sessions."""
    predictions = [
        _RoundResult(probability(row, mean), bool(y))
        for rows, suffices in sessions
        for row, y in zip(rows, suffices, strict=True)
    ]
    high, low = ([one.probability for one in predictions if one.is_sufficient is kind] for kind in (True, False))
    return auc(high, low), calibration_error(predictions)
