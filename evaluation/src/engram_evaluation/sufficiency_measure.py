"""Quality of sufficiency: before and after verdicts, as a stop rule, and for absent evidence.

An answer was enough if as many of its first five passages are relevant as can be. A question of another data set is
one that the corpus cannot answer.
"""

import random
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking import sufficiency
from engram.core.ranking.coverage import coverage
from engram.services.question.query import HopStopRule, Memory, Query
from engram.services.question.search import RetrievalResult
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.harness import Harness, QueryArm
from engram_evaluation.run_progress import Begin
from engram_evaluation.verdict_givers import Judge
from engram_evaluation.weight_fit import holds_all_relevant

BINS = 10
"""Of the expected calibration error, of equal width."""
CALIBRATION_DRAWS = 100
"""Draws of outcomes that are as frequent as predicted."""
RULES: tuple[HopStopRule, ...] = ("none", "coverage", "learned")
COMPARED_RULES = ("coverage", "learned")
"""Rules whose word on the same answers is compared."""


@dataclass(frozen=True, slots=True)
class SufficiencyPrediction:
    """One question, asked once.

    Attributes:
        probability: that the answer is sufficient, in [0, 1].
        is_sufficient: whether it was.
        recall: share of the relevant passages among the first five.
        ms: wall-clock time of the query.
        rule_values: how sure each of ``COMPARED_RULES`` is that the evidence suffices, in [0, 1].
    """

    probability: float
    is_sufficient: bool
    recall: float
    hops: int
    ms: float
    rule_values: Mapping[str, float] = field(default_factory=dict)


def auc(high: Sequence[float], low: Sequence[float]) -> float | None:
    """Probability that one of the first is above one of the second, ties counting half; None without both."""
    if not len(high) or not len(low):
        return None
    ones, others = np.asarray(high)[:, None], np.asarray(low)[None, :]
    return float(((ones > others) + 0.5 * (ones == others)).mean())


class Prediction(Protocol):
    """A predicted probability of sufficiency, in [0, 1], and whether the evidence was sufficient."""

    @property
    def probability(self) -> float: ...
    @property
    def is_sufficient(self) -> bool: ...


def calibration_error(predictions: Sequence[Prediction], bins: int = BINS) -> float:
    """Expected calibration error: how far probabilities are from the shares of sufficient answers, in [0, 1].

    Naeini et al., 2015: the mean over bins of equal width of |share of sufficient answers - mean probability|,
    weighted by the sizes of the bins.
    """
    return _calibration_error(
        np.array([one.probability for one in predictions]),
        np.array([one.is_sufficient for one in predictions]),
        bins,
    )


def _calibration_error(probability: NDArray[np.float64], is_sufficient: NDArray[np.bool_], bins: int) -> float:
    """Return the expected calibration error of these probabilities, (n,), and outcomes, (n,)."""
    bin_numbers = np.minimum((probability * bins).astype(np.intp), bins - 1)
    # For each bin its size times |share of sufficient answers - mean probability|.
    gaps = np.bincount(bin_numbers, is_sufficient, bins) - np.bincount(bin_numbers, probability, bins)
    return float(np.abs(gaps).sum() / len(is_sufficient)) if len(is_sufficient) else 0.0


def compute_least_error(predictions: Sequence[Prediction], bins: int = BINS) -> float:
    """The calibration error of so many answers if every probability were true, in [0, 1].

    It is not 0: with few answers in a bin, chance makes the share of sufficient ones differ from the probability.
    Outcomes are drawn ``CALIBRATION_DRAWS`` times, always alike.
    """
    order, probability = np.random.default_rng(0), np.array([one.probability for one in predictions])
    draws = order.random((CALIBRATION_DRAWS, len(predictions))) < probability
    return statistics.fmean(_calibration_error(probability, is_sufficient, bins) for is_sufficient in draws)


def measure(
    harness: Harness,
    dataset: Dataset,
    foreign: Iterable[Dataset],
    judge: Judge,
    begin: Begin,
    *,
    verdicts: int,
    seeds: Sequence[int],
    limit: int | None = None,
    lacking: int = 0,
) -> dict[str, Any]:
    """All of it as plain JSON. What the collection had learned is forgotten, before and after.

    Args:
        foreign: data sets whose questions the corpus does not answer.
        verdicts: given to questions other than those that are then asked.
        seeds: orders in which questions are drawn to be judged; figures after verdicts are means over them.
        limit: questions asked at most, of each data set.
        lacking: of so many of the questions one relevant passage is deleted in the end; to open the harness again
            brings it back.
    """
    questions = list(dataset.questions[:limit])
    harness.reset()
    stopping = {rule: _predict(harness, questions, "off", begin, f"stop: {rule}", rule) for rule in RULES}
    before = stopping["coverage"]
    own = [one.probability for one in before]
    report: dict[str, Any] = {
        "dataset": dataset.name,
        "questions": len(questions),
        "before": _quality(before),
        # Of the walk as far as it goes: a rule that ended it would choose what it is measured on.
        "telling": {name: _quality(_replace_probabilities(stopping["none"], name)) for name in COMPARED_RULES},
        "stopping": {rule: _costs(predictions) for rule, predictions in stopping.items()},
        "answerable": {
            other.name: auc(
                own,
                [one.probability for one in _predict(harness, other.questions[:limit], "off", begin, other.name)],
            )
            for other in foreign
        },
    }
    after = [
        _measure_after_verdicts(harness, questions, judge, begin, verdicts, seed) for seed in seeds if verdicts
    ]
    if after:
        report["after"] = {"verdicts": verdicts, "seeds": list(seeds)} | _means(after)
    if lacking:
        report["lacking"] = _measure_missing_evidence(harness, questions, begin, lacking)
    return report


def _measure_missing_evidence(
    harness: Harness, questions: Sequence[Question], begin: Begin, most: int
) -> dict[str, float | None]:
    """Measure how questions with missing evidence are told from the others, and their values with it present.

    Others lack a passage as well, if it is one of those that were deleted, and are left out.
    """
    some = questions[:most]
    removed = {min(question.relevant) for question in some}
    whole = [question for question in questions if not question.relevant & removed]
    before = _predict(harness, some, "off", begin, "before passages go")
    for passage in sorted(removed):
        harness.services.corpus.ingest.delete_passage(harness.scope, passage)
    after = _predict(harness, some, "off", begin, "without a passage each")
    control = _predict(harness, whole, "off", begin, "others")
    return {
        "questions": len(some),
        "others": len(whole),
        "auc": auc([one.probability for one in control], [one.probability for one in after]),
        "probability_before": statistics.fmean(one.probability for one in before),
        "probability_after": statistics.fmean(one.probability for one in after),
    }


def _measure_after_verdicts(
    harness: Harness, questions: Sequence[Question], judge: Judge, begin: Begin, verdicts: int, seed: int
) -> dict[str, float | None]:
    """Measure the questions that were not judged."""
    order = random.Random(seed).sample(list(questions), len(questions))  # noqa: S311 - repeatable, not secret
    step = begin(f"verdicts, seed {seed}", min(verdicts, len(order)))
    for question in order[:verdicts]:
        harness.teach(question, QueryArm("default", "off"), judge)
        step()
    predictions = _predict(harness, order[verdicts:], "read", begin, f"after, seed {seed}")
    harness.reset()
    return _quality(predictions)


def _predict(
    harness: Harness,
    questions: Sequence[Question],
    memory: Memory,
    begin: Begin,
    label: str,
    rule: HopStopRule | None = None,
) -> list[SufficiencyPrediction]:
    """Ask every question once, and return the predicted and the true sufficiency of each answer."""
    step, retrieve, predictions = begin(label, len(questions)), harness.services.retrieval.retrieve, []
    for question in questions:
        query = Query(text=question.text, scope=harness.scope, memory=memory, stop_rule=rule)
        began = time.perf_counter()
        retrieved = retrieve.find(retrieve.plan(query))
        ms = (time.perf_counter() - began) * 1000.0
        first = [name for _, name, _ in retrieved.shown_passages[: sufficiency.EVIDENCE_PASSAGES]]
        enough = retrieved.ranking.sufficiency
        predictions.append(
            SufficiencyPrediction(
                probability=0.0 if enough is None else enough.probability,
                is_sufficient=holds_all_relevant(question.relevant, first),
                recall=sum(name in question.relevant for name in first) / max(len(question.relevant), 1),
                hops=len(retrieved.walk.hops),
                ms=ms,
                rule_values=_compute_rule_values(retrieved),
            )
        )
        step()
    return predictions


def _compute_rule_values(retrieved: RetrievalResult) -> dict[str, float]:
    """Return the value of each of ``COMPARED_RULES`` for the same answer."""
    plan, walk, enough = retrieved.plan, retrieved.walk, retrieved.ranking.sufficiency
    return {
        "coverage": coverage(plan.query.text, walk.texts),
        "learned": 0.0 if enough is None else enough.probability,
    }


def _replace_probabilities(predictions: Sequence[SufficiencyPrediction], name: str) -> list[SufficiencyPrediction]:
    return [replace(one, probability=one.rule_values[name]) for one in predictions]


def _quality(predictions: Sequence[SufficiencyPrediction]) -> dict[str, float | None]:
    """Return how well the predicted probabilities match which answers were sufficient.

    ``ece_if_calibrated`` is the calibration error that chance alone gives to true probabilities.
    """
    return {
        "share_sufficient": statistics.fmean(one.is_sufficient for one in predictions) if predictions else None,
        "mean_probability": statistics.fmean(one.probability for one in predictions) if predictions else None,
        "auc": auc(
            [one.probability for one in predictions if one.is_sufficient],
            [one.probability for one in predictions if not one.is_sufficient],
        ),
        "ece": calibration_error(predictions),
        "ece_if_calibrated": compute_least_error(predictions),
    }


def _costs(predictions: Sequence[SufficiencyPrediction]) -> dict[str, float]:
    """Return what a stop rule finds, and the hops and milliseconds that it takes."""
    return {
        "recall@5": statistics.fmean(one.recall for one in predictions),
        "all@5": statistics.fmean(one.is_sufficient for one in predictions),
        "hops": statistics.fmean(one.hops for one in predictions),
        "ms": statistics.median(one.ms for one in predictions),
    }


def _means(rows: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """Return the mean of each figure over the rows that have it; None where no row has."""
    means: dict[str, float | None] = {}
    for name in rows[0]:
        values = [value for row in rows if (value := row[name]) is not None]
        means[name] = statistics.fmean(values) if values else None
    return means
