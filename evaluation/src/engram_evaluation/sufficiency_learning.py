"""Gain of verdicts for sufficiency, by arithmetic alone: one pass of answers, many draws.

A verdict that names all the evidence says of its answer whether the first five held it. So once the answers are
known, no question has to be asked again to see what verdicts on some do for the others.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.context.errors import InvalidRequestError
from engram.core.ranking.sufficiency import build_counted_observation, compute_learned_mean, probability
from engram.core.ranking.weight_beliefs import Floats, WeightBelief, WeightEvidence, build_empty_evidence
from engram.providers.ranking_prior import RankingPrior
from engram_evaluation.dataset import Dataset
from engram_evaluation.harness import Harness
from engram_evaluation.run_progress import Begin
from engram_evaluation.sufficiency_measure import (
    SufficiencyPrediction,
    auc,
    calibration_error,
    compute_least_error,
)
from engram_evaluation.weight_fit import collect_answers

CERTAIN = 1e-12
"""Least probability that is given to what happened: log loss is finite."""
COLUMNS = ("AUC", "ECE", "least ECE", "log loss")


@dataclass(frozen=True, slots=True)
class LearnedSufficiency:
    """Quality of sufficiency after a number of verdicts on other answers, as means over the draws.

    Attributes:
        measured: answers in each draw.
        auc: area under the curve; None where no draw has answers of both kinds.
        ece: expected calibration error, 10 bins.
        ece_if_calibrated: what the calibration error would be of so many answers if every probability were true.
        loss: mean of -log of the probability given to what was so.
    """

    verdicts: int
    measured: int
    auc: float | None
    ece: float
    ece_if_calibrated: float
    loss: float


def measure_drawn(
    harness: Harness,
    dataset: Dataset,
    prior: RankingPrior,
    begin: Begin,
    *,
    verdicts: Sequence[int],
    draws: int,
    noise: float,
    limit: int | None = None,
) -> dict[str, Any]:
    """All of it as plain JSON; nothing is learned by the collection, and nothing of what it had is heard.

    Args:
        verdicts: how many, each number by itself.
        noise: R of one, see ``sufficiency.observe``.
        limit: questions asked at most.

    Raises:
        InvalidRequestError: there are no more answers than verdicts.
    """
    limited = replace(dataset, questions=dataset.questions[:limit])
    rows, is_sufficient = collect_answers(
        harness, limited, prior, begin(f"{dataset.name}: answers", len(limited.questions))
    )
    measured = measure_draws(
        prior.sufficiency,
        rows,
        is_sufficient,
        verdicts,
        draws,
        noise,
        lambda count: begin(f"{count} verdicts", draws),
    )
    return {
        "dataset": dataset.name,
        "questions": len(limited.questions),
        "share_sufficient": float(is_sufficient.mean()),
        "draws": draws,
        "noise": noise,
        "after": [asdict(one) for one in measured],
    }


def measure_draws(
    prior: WeightBelief,
    rows: Floats,
    is_sufficient: NDArray[np.bool_],
    verdicts: Sequence[int],
    draws: int,
    noise: float,
    begin: Callable[[int], Callable[[], None]] = lambda _: lambda: None,
) -> list[LearnedSufficiency]:
    """Before any verdict, of all answers, and after each of these numbers, of those that were not judged.

    Args:
        rows: features of each answer, (n, k).
        is_sufficient: whether each answer was, (n,).
        begin: given a number of verdicts: what is called after each draw.

    Raises:
        InvalidRequestError: there are no more answers than verdicts.
    """
    most = max(verdicts, default=0)
    if len(rows) <= most:
        raise InvalidRequestError(f"{len(rows)} answers leave none to measure after {most} verdicts.")
    terms = [
        build_counted_observation(row, int(y), prior, noise).evidence
        for row, y in zip(rows, is_sufficient, strict=True)
    ]
    measured = [_measure_learned(0, prior.mean, rows, is_sufficient)]
    for count in verdicts:
        step, after = begin(count), []
        for draw in range(draws):
            order = np.random.default_rng(draw).permutation(len(rows))
            evidence: WeightEvidence = reduce(
                add, (terms[answer] for answer in order[:count].tolist()), build_empty_evidence(len(prior.mean) + 1)
            )
            unjudged, mean = order[count:], compute_learned_mean(prior, evidence)
            after.append(_measure_learned(count, mean, rows[unjudged], is_sufficient[unjudged]))
            step()
        measured.append(_mean(after))
    return measured


def lines(measured: dict[str, Any]) -> list[list[str]]:
    """A table of what ``measure_drawn`` found."""
    rows = [["verdicts", "answers", *COLUMNS]]
    for one in measured["after"]:
        values = [one["auc"], one["ece"], one["ece_if_calibrated"], one["loss"]]
        cells = ["-" if value is None else f"{value:.3f}" for value in values]
        rows.append([str(one["verdicts"]), str(one["measured"]), *cells])
    return rows


def _measure_learned(
    count: int, mean: Floats, rows: Floats, is_sufficient: NDArray[np.bool_]
) -> LearnedSufficiency:
    """Measure how weights ``mean``, learned from ``count`` verdicts, predict the sufficiency of these answers."""
    predictions = [
        SufficiencyPrediction(probability(row, mean), bool(y), recall=0.0, hops=0, ms=0.0)
        for row, y in zip(rows, is_sufficient, strict=True)
    ]
    confidences = np.array([one.probability if one.is_sufficient else 1.0 - one.probability for one in predictions])
    return LearnedSufficiency(
        verdicts=count,
        measured=len(predictions),
        auc=auc(*([one.probability for one in predictions if one.is_sufficient is kind] for kind in (True, False))),
        ece=calibration_error(predictions),
        ece_if_calibrated=compute_least_error(predictions),
        loss=float(-np.log(np.maximum(confidences, CERTAIN)).mean()),
    )


def _mean(several: Sequence[LearnedSufficiency]) -> LearnedSufficiency:
    """Return the means of all figures over the draws."""
    areas = [one.auc for one in several if one.auc is not None]
    return replace(
        several[0],
        auc=float(np.mean(areas)) if areas else None,
        ece=float(np.mean([one.ece for one in several])),
        ece_if_calibrated=float(np.mean([one.ece_if_calibrated for one in several])),
        loss=float(np.mean([one.loss for one in several])),
    )
