"""Gaussian beliefs about weights, moved by verdicts, in information form (ours).

Of a ranking a verdict says which of an episode's candidates should have come before others; so is taught how far to
trust a reranker. A candidate's score is the inner product of its features and the weights. The likelihood is the
softmax of the scores over a supported passage and its rivals, those that were not supported (a conditional logit),
which weighs every rival by how near it came. As in an extended Kalman filter that likelihood is linearised, here
always at the prior mean:

    precision   += H / R      H = Cov_p[x]
    information += g / R      g = x_supported - E_p[x]
    mean         = prior mean + (prior precision + precision)^-1 information

Because every verdict is linearised at the same point, what a collection has learned is a plain sum over its
verdicts: their order does not matter, and a verdict is taken back by leaving its term out.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.core.learning.logged_verdict import LoggedVerdict

Floats = NDArray[np.float64]

SPARED_RIVALS = 3
"""Rivals that may come before a supported passage: five passages are shown and about two of them support an answer.
Without it, 50 verdicts on MuSiQue lower recall@5 of other questions by 3 points, with it by none."""

MOST_LOG_ODDS = 700.0
"""Log odds beyond which nothing tells a share from 1."""
STEP, TOGETHER = 16, 16
"""Candidates by which numbers of them are told apart, and verdicts that are reckoned together: of more, the memory
that it takes is handed back and asked for anew each time, which takes as long as the reckoning."""


def sigmoid(log_odds: Floats | float) -> Floats:
    """Probability of log odds, 1 / (1 + exp(-x)), without overflow."""
    return np.asarray(np.exp(-np.logaddexp(0.0, -np.asarray(log_odds))))


@dataclass(frozen=True, slots=True, order=True)
class PriorIdentity:
    """Model and prior of a collection's belief, the prior by its fingerprint.

    What was learned from one prior says nothing about another.

    Attributes:
        model: name of what the weights are of: "sufficiency" (whether an answer is enough) or "reranker" (how
            far a reranker is trusted).
    """

    model: str
    prior: str


@dataclass(frozen=True, slots=True)
class WeightBelief:
    """Gaussian belief about weights: one before any verdict, or what verdicts made of it.

    Attributes:
        mean: (k,), one weight per feature.
        precision: (k, k), symmetric and positive definite.
    """

    mean: Floats
    precision: Floats


@dataclass(frozen=True, slots=True)
class WeightEvidence:
    """Evidence of verdicts that adds to a prior; sums of evidence are evidence too.

    Attributes:
        information: precision-weighted shift from the prior's mean, (k,).
        precision: (k, k), symmetric and positive semi-definite.
    """

    information: Floats
    precision: Floats

    def __add__(self, other: "WeightEvidence") -> "WeightEvidence":
        return WeightEvidence(self.information + other.information, self.precision + other.precision)

    def __sub__(self, other: "WeightEvidence") -> "WeightEvidence":
        return WeightEvidence(self.information - other.information, self.precision - other.precision)


def build_empty_evidence(size: int) -> WeightEvidence:
    """The sum over no verdict at all."""
    return WeightEvidence(np.zeros(size), np.zeros((size, size)))


@dataclass(frozen=True, slots=True)
class WeightObservation:
    """Observation of the weights by one verdict.

    Attributes:
        evidence: what it adds.
        surprise: in [0, 1], the probability that the prior gave to what the verdict denies: of the ranking to a
            rival, on average over the supported.
    """

    evidence: WeightEvidence
    surprise: float


@dataclass(frozen=True, slots=True)
class CandidateComparison:
    """Candidates of an episode that a verdict compares.

    Attributes:
        features: (n, k), a row for each.
        supported: (n,), which of them it supports.
        noise: R > 0; 1 for a verdict that is taken at its word.
        examined: (n,), with what probability each was looked at, in (0, 1]; None: all for certain. A rival that was
            looked at one time in ten weighs a tenth in the softmax: mostly it was not passed over, but not seen.
    """

    features: NDArray[np.floating]
    supported: NDArray[np.bool_]
    noise: float
    examined: Floats | None = None

    def __post_init__(self) -> None:
        if not self.noise > 0:
            raise ValueError("observation noise must be positive")
        if self.examined is not None and not ((self.examined > 0) & (self.examined <= 1)).all():
            raise ValueError("an examination probability must lie in (0, 1]")


def compare_candidates(
    ranked: Sequence[int],
    features: NDArray[np.float32],
    named: Iterable[tuple[int, int]],
    verdict: LoggedVerdict,
    *,
    prior: WeightBelief,
    noise: float,
    examined: Mapping[int, float] | None = None,
) -> CandidateComparison | None:
    """Return the comparison of an episode's ranking by a verdict; None if it compares no two ranked passages.

    A partial verdict speaks of the passages that it names, any other rejects what it does not name.

    Args:
        ranked: passages, with their features, (n, k).
        named: (passage, y) of the sentences that the verdict speaks of.
        noise: R of the verdict.
        examined: passage -> with what probability it was looked at, in (0, 1]; others for certain.
    """
    if features.shape[1] != len(prior.mean):
        return None  # of a version with other features
    targets = verdict.passage_targets(named)
    helped = {passage for passage, target in targets.items() if target == 1}
    supported = np.array([passage in helped for passage in ranked])
    if not supported.any():
        return None
    looked_at = np.array([examined.get(passage, 1.0) for passage in ranked]) if examined else None
    if verdict.partial:
        is_judged = np.array([passage in targets for passage in ranked])
        features, supported = features[is_judged], supported[is_judged]
        looked_at = None if looked_at is None else looked_at[is_judged]
    return CandidateComparison(features, supported, noise, looked_at)


def observe(comparison: CandidateComparison, prior: WeightBelief) -> WeightObservation | None:
    """Compute the observation of one verdict: see ``observe_all``."""
    return observe_all([comparison], prior)[0]


def observe_all(comparisons: Sequence[CandidateComparison], prior: WeightBelief) -> list[WeightObservation | None]:
    """Compute the observation of each verdict; None if it compares nothing.

    Each supported passage is compared with every candidate that is not supported but the ``SPARED_RIVALS`` best: it
    has to come among the first few, not first. Each counts as a share, so that a verdict on two passages weighs as
    much as one on four.

    Many are reckoned together, by how many candidates there are, in steps of ``STEP``: what one comes to does not
    depend on which others are beside it.

    Args:
        prior: where the likelihood is linearised.
    """
    observations: list[WeightObservation | None] = [None] * len(comparisons)
    alike: dict[int, list[int]] = {}
    for at, one in enumerate(comparisons):
        chosen = int(one.supported.sum())
        if chosen and len(one.supported) - chosen > SPARED_RIVALS:
            alike.setdefault(-(-len(one.supported) // STEP) * STEP, []).append(at)
    for size, places in alike.items():
        for start in range(0, len(places), TOGETHER):
            some = places[start : start + TOGETHER]
            for at, observation in zip(some, _observe([comparisons[at] for at in some], size, prior), strict=True):
                observations[at] = observation
    return observations


def _observe(
    comparisons: Sequence[CandidateComparison], size: int, prior: WeightBelief
) -> Iterator[WeightObservation]:
    """Compute the observations of verdicts that compare up to ``size`` candidates each.

    With weights e^s of the rivals r, T their sum and μ their weighted mean, a supported passage x of odds o = e^s
    has the share p = o / (T + o), and says g = (1 - p) (x - μ) and, around μ instead of E_p[x], in terms of which
    none is negative, H = Σ e^s (r - μ)(r - μ)ᵀ / (T + o) + p (1 - p) (x - μ)(x - μ)ᵀ.
    """
    count, width = len(comparisons), len(prior.mean)
    features = np.zeros((count, size, width))
    chosen, rival = np.zeros((count, size), dtype=np.bool_), np.zeros((count, size), dtype=np.bool_)
    looked_at = np.zeros((count, size))
    for at, one in enumerate(comparisons):
        rows = len(one.supported)
        features[at, :rows], chosen[at, :rows], rival[at, :rows] = one.features, one.supported, ~one.supported
        if one.examined is not None:
            looked_at[at, :rows] = np.log(one.examined)
    scores = (features @ prior.mean[:, None])[:, :, 0]
    spared = np.argsort(np.where(rival, -scores, np.inf), axis=1, kind="stable")[:, :SPARED_RIVALS]
    np.put_along_axis(rival, spared, False, axis=1)
    visible_scores = np.where(rival, scores + looked_at, -np.inf)
    most = visible_scores.max(axis=1, keepdims=True)
    weights = np.exp(visible_scores - most)
    total = weights.sum(axis=1, keepdims=True)
    centred = features - (weights / total)[:, None, :] @ features
    odds = np.where(chosen, np.exp(np.minimum(scores - most, MOST_LOG_ODDS)), 0.0)
    missed = np.where(chosen, total / (total + odds), 0.0)
    spread = weights * (missed / total).sum(axis=1, keepdims=True) + missed * (odds / (total + odds))
    information = (missed[:, None, :] @ centred)[:, 0]
    precision = (centred * spread[:, :, None]).transpose(0, 2, 1) @ centred
    supported = chosen.sum(axis=1)
    scales = 1.0 / (np.array([one.noise for one in comparisons]) * supported)
    surprises = (missed.sum(axis=1) / supported).tolist()
    for at, (scale, surprise) in enumerate(zip(scales, surprises, strict=True)):
        yield WeightObservation(WeightEvidence(information[at] * scale, precision[at] * scale), surprise)


def posterior(prior: WeightBelief, evidence: WeightEvidence) -> WeightBelief:
    """The belief after the evidence, as (mean, precision)."""
    precision = prior.precision + evidence.precision
    return WeightBelief(prior.mean + np.linalg.solve(precision, evidence.information), precision)
