"""Ranking weights as a belief: a Gaussian over the weights, moved by verdicts, in information form (ours).

A passage's score is the inner product of its features and the weights. A verdict says which of an episode's
candidates should have come before others. Its likelihood is the softmax of the scores over a supported passage and
its rivals, those that were not supported (a conditional logit), which weighs every rival by how near it came. As in
an extended Kalman filter that likelihood is linearised, here always at the prior mean:

    precision   += H / R      H = Cov_p[x]
    information += g / R      g = x_supported - E_p[x]
    mean         = prior mean + (prior precision + precision)^-1 information

Because every verdict is linearised at the same point, what a collection has learned is a plain sum over its
verdicts: their order does not matter, and a verdict is taken back by leaving its term out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from app.core.verdict import LoggedVerdict

Floats = NDArray[np.float64]

SPARED = 3
"""Rivals that may come before a supported passage: five passages are shown and about two of them support an answer.
Without it, 50 verdicts on MuSiQue lower recall@5 of other questions by 3 points, with it by none."""


Model = Literal["enough", "ranking"]
"""What there are beliefs of: whether an answer is enough (see ``sufficiency``), and how passages are ranked."""


@dataclass(frozen=True, slots=True, order=True)
class Believed:
    """What a collection's belief is of, and from which prior on, by its fingerprint.

    What was learned from one prior says nothing about another.
    """

    model: Model
    prior: str


@dataclass(frozen=True, slots=True)
class Prior:
    """What is believed before any verdict.

    Attributes:
        mean: (k,), one weight per feature.
        precision: (k, k), symmetric and positive definite.
    """

    mean: Floats
    precision: Floats


@dataclass(frozen=True, slots=True)
class Evidence:
    """What verdicts add to a prior; sums of it are evidence too.

    Attributes:
        information: (k,).
        precision: (k, k), symmetric and positive semi-definite.
    """

    information: Floats
    precision: Floats

    def __add__(self, other: "Evidence") -> "Evidence":
        return Evidence(self.information + other.information, self.precision + other.precision)


def no_evidence(size: int) -> Evidence:
    """The sum over no verdict at all."""
    return Evidence(np.zeros(size), np.zeros((size, size)))


@dataclass(frozen=True, slots=True)
class Observation:
    """What one verdict says of the weights.

    Attributes:
        evidence: what it adds.
        surprise: in [0, 1], the probability that the prior gave to what the verdict denies: of the ranking to a
            rival, on average over the supported.
    """

    evidence: Evidence
    surprise: float


def observed(
    ranked: Sequence[int],
    features: NDArray[np.float32],
    named: Iterable[tuple[int, int]],
    verdict: LoggedVerdict,
    *,
    prior: Prior,
    noise: float,
    examined: Mapping[int, float] | None = None,
) -> Observation | None:
    """What a verdict says of the ranking of an episode; None if it compares no two ranked passages.

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
    supported = np.array([targets.get(passage) == 1 for passage in ranked])
    if not supported.any():
        return None
    looked = np.array([examined.get(passage, 1.0) for passage in ranked]) if examined else None
    known = features.astype(np.float64)
    if verdict.partial:
        spoken = np.array([passage in targets for passage in ranked])
        known, supported = known[spoken], supported[spoken]
        looked = None if looked is None else looked[spoken]
    return observe(known, supported, prior, noise, looked)


def observe(
    features: Floats,
    supported: NDArray[np.bool_],
    prior: Prior,
    noise: float,
    examined: Floats | None = None,
) -> Observation | None:
    """What one verdict says; None if it compares nothing.

    Each supported passage is compared with every candidate that is not supported but the ``SPARED`` best: it has to
    come among the first few, not first. Each counts as a share, so that a verdict on two passages weighs as much
    as one on four.

    Args:
        features: (n, k), one row per candidate of the episode that the verdict speaks of.
        supported: (n,), which of them the verdict supports.
        prior: where the likelihood is linearised.
        noise: R > 0; 1 for a verdict that is taken at its word.
        examined: (n,), with what probability each was looked at, in (0, 1]; None: all for certain. A rival that was
            looked at one time in ten weighs a tenth in the softmax: mostly it was not passed over, but not seen.

    Raises:
        ValueError: the noise is not positive, or a probability is out of its range.
    """
    if not noise > 0:
        raise ValueError("observation noise must be positive")
    looked = np.ones(len(features)) if examined is None else examined
    if np.any(~((looked > 0) & (looked <= 1))):
        raise ValueError("an examination probability must lie in (0, 1]")
    chosen, rivals = features[supported], features[~supported]
    ahead = np.argsort(-(rivals @ prior.mean), kind="stable")[SPARED:]
    rivals, seen = rivals[ahead], np.append(0.0, np.log(looked[~supported][ahead]))
    if not len(chosen) or not len(rivals):
        return None
    total, missed = no_evidence(features.shape[1]), 0.0
    compared = np.vstack([chosen[:1], rivals])
    for row in chosen:
        compared[0] = row
        share = softmax(compared @ prior.mean + seen)
        expected = share @ compared
        centred = compared - expected
        total += Evidence(row - expected, (centred * share[:, None]).T @ centred)
        missed += 1.0 - float(share[0])
    scale = 1.0 / (noise * len(chosen))
    return Observation(Evidence(total.information * scale, total.precision * scale), missed / len(chosen))


def posterior(prior: Prior, evidence: Evidence) -> Prior:
    """The belief after the evidence, as (mean, precision)."""
    precision = prior.precision + evidence.precision
    return Prior(prior.mean + np.linalg.solve(precision, evidence.information), precision)


def softmax(scores: Floats) -> Floats:
    """exp(s) / Σ exp(s), (n,)."""
    shifted = np.exp(scores - scores.max())
    result: Floats = shifted / shifted.sum()
    return result
