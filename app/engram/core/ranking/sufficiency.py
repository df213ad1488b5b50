"""Sufficiency: with what probability the first five passages of an answer hold all the evidence (ours).

RFM-RAG asks a language model whether the evidence pool suffices, or trains a classifier for it (R-Feedback). Here
it is a logistic model over a few features of a ranked answer, p = 1 / (1 + exp(-w·x)), whose weights are a Gaussian
belief like those of the ranking (see ``weight_beliefs``). Every verdict adds, with w the prior mean and Σ its
covariance,

    precision   += c x xᵀ / R                          c = tanh(ξ/2) / (2ξ)
    information += (y - 1/2 - c w·x) x / R             ξ² = (w·x)² + xᵀΣx
    confirmed   += y / R
    judged      += 1 / R

so what a collection has learned is a sum over its verdicts, in any order, and one is taken back by leaving its
term out. This is the parabola, in the log odds, that touches the log-likelihood at ±ξ and lies below it everywhere
(Jaakkola and Jordan, 2000, equation 12), of all such ones the best on average over the prior. Touching at the prior
mean alone it would be as steep as there, however unsure the prior is, and verdicts that agree would move the
weights too little; with the likelihood's own curvature, p (1 - p), verdicts that a sure prior did not expect carry
them too far.

Verdicts are a biased sample: people confirm what is right, and say less of answers that failed, or correct those
alone. Selection by outcome shifts the level of a logistic model and leaves its shape (Prentice and Pyke, 1979). So
verdicts teach the shape, which is the contrast of confirmed and denied answers, and the level stays: the mean log
odds at the centre of the judged answers is the prior's. The sums count by the contrast that they hold,

    confirmed / (confirmed + h) · denied / (denied + h)        denied = judged - confirmed

with h = ``VERDICTS_FOR_HALF_WEIGHT``. Confirmations alone, or corrections alone, leave the prior as it is.

No verdict alone moves other answers by much: of n verdicts that decide k weights each moves them by about k / n, so
h is large. An answer far from the others would move them by more, so its x xᵀ and x count v / xᵀΣx as much, with
v = ``LARGEST_LEVERAGE``, whichever way it is judged (weights by leverage: Krasker and Welsch, 1982).

The features are few on purpose: over all signals that an answer has, thirty of them and more, a model fitted to
other corpora tells enough from not enough worse than over these.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.core.learning.logged_verdict import LoggedVerdict
from engram.core.learning.ratings import REASONS
from engram.core.ranking.weight_beliefs import (
    Floats,
    WeightBelief,
    WeightEvidence,
    WeightObservation,
    posterior,
    sigmoid,
)

BACKGROUND_RANK = 10
"""Rank, from 1, of the passage that stands for those that are merely on the subject."""
MOST_COSINE = 0.999
"""Largest absolute cosine: artanh stays finite."""
EVIDENCE_PASSAGES = 5
"""Passages that the evidence has to be among."""
TWO_HOP_PASSAGES = 2
"""Passages, the best, that an answer to a question of two hops mostly rests on."""
ANSWER_FEATURES = (
    "bias",
    "mass",
    "margin_2_3",
    "margin_3_5",
    "margin_5_6",
    "margin_1_10",
    "nearness_1_10",
    "covered",
    "shared_new",
    "open",
    "compared",
    "rival",
)
"""What is looked at of a ranked answer; scores are those of the ranking weights, before recall.

- bias: 1.
- mass: log odds of the best two among all candidates under the softmax of their scores, within ``MOST_LOG_ODDS``.
- margin_a_b: score of the a-th best less that of the b-th; the last stands for places that there are not.
- nearness_1_10: artanh of the highest cosine with the question less artanh of the tenth highest. To a question that
  the corpus cannot answer, many passages are near alike.

The others are 0 in a general corpus, where they tell answers of other corpora wrong:

- covered: of the question's words, by their weight, what the first five have together, in [0, 1].
- shared_new: the most that one of the first five shares with the pool besides what the question names, see
  ``complementarity``.
- open: how many things the question goes through without naming them, at most ``MOST_BRIDGES``, unless every side
  is complete; see ``Chain``.
- compared: 1 if the question asks the same of several things that it names, and goes through nothing else.
- rival: how near the best passage beyond the first five that completes a side comes to the fifth, 1 / (1 + e^d) of
  the difference d of their scores, in [0, 1/2]; 0 if there is none.
"""
PATTERNED = tuple(ANSWER_FEATURES.index(name) for name in ("open", "compared"))
"""Places of the features that rest on patterns of English questions: a question in another language has none."""
MOST_BRIDGES = 2
"""Things that a question goes through without naming them that are told apart: more are as many."""
MOST_LOG_ODDS = 12.0
"""Largest absolute log odds: beyond it there is nothing to tell apart."""
SMALLEST_XI = 1e-6
"""ξ up to here is 0, where c is 1/4."""
VERDICTS_FOR_HALF_WEIGHT = 200.0
"""Summed 1/R of confirmations, and of denials, at which all verdicts count half: 100 of each, at an R of 0.5."""
LARGEST_LEVERAGE = 0.1
"""Variance xᵀΣx of an answer's log odds from which on its verdict counts less, in proportion."""
LEAST_SHARE = 1e-9
"""A smaller share is a rounding error: a sum that terms were taken out of has no denial."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Titles and names that link a question to candidates, and these to each other.

    A side is a passage of the pool that is titled after something that the question names. What leads on from it is
    titled after something that it names, and not after something that the question names. A side is complete if one
    of the first five leads on from it: who directed both of two films takes two films and two directors.

    Attributes:
        through: number of unnamed entities between the question's names and its answer, see ``question_triples``;
            None: the question's language has no patterns that tell.
        compared: whether the question compares several entities that it names, with no unnamed one between.
        about: whether each candidate, the best first, is titled after an entity of the question, (n,).
        named: [i, j]: whether candidate j is titled after an entity that side i names, (m, n).
    """

    through: int | None
    compared: bool
    about: NDArray[np.bool_]
    named: NDArray[np.bool_]

    @property
    def leading(self) -> NDArray[np.bool_]:
        """Whether each candidate leads on from each side, (m, n)."""
        return self.named & ~self.about

    @property
    def complete(self) -> bool:
        """Whether there are sides and each is complete."""
        return len(self.named) > 0 and bool(self.leading[:, :EVIDENCE_PASSAGES].any(axis=1).all())


def features(
    scores: Floats,
    similarity: Floats,
    shared_new: Floats,
    covered: float,
    chain: Chain,
    *,
    expected: Floats,
    general: bool = False,
) -> Floats:
    """The features of one ranked answer, (len(ANSWER_FEATURES),).

    Args:
        scores: of all candidates, the best first, (n,).
        similarity: cosine of each candidate and the question, (n,), in any order.
        shared_new: of the candidates in the order of ``scores``, (n,).
        covered: by ``compute_word_coverage``, in [0, 1].
        chain: over the candidates in the order of ``scores``.
        expected: what to expect of each of ``PATTERNED`` where the question's language has no patterns, as weights
            of the other features, (len(PATTERNED), len(ANSWER_FEATURES)).
        general: whether the corpus is a general one.

    Raises:
        ValueError: there is no candidate, or the scores are not in falling order.
    """
    if not len(scores):
        raise ValueError("an answer without candidates has no features")
    if (np.diff(scores) > 0).any():
        raise ValueError("scores must be in falling order")

    def score(place: int) -> float:
        return float(scores[min(place, len(scores)) - 1])

    near = np.arctanh(np.clip(np.sort(similarity)[::-1], -MOST_COSINE, MOST_COSINE))
    ranked = [
        1.0,
        _mass(scores),
        score(2) - score(3),
        score(3) - score(5),
        score(5) - score(6),
        score(1) - score(BACKGROUND_RANK),
        float(near[0] - near[min(BACKGROUND_RANK, len(near)) - 1]),
    ]
    chained = [
        covered,
        float(shared_new[:EVIDENCE_PASSAGES].max()),
        0.0 if chain.complete else float(min(chain.through or 0, MOST_BRIDGES)),
        float(chain.compared),
        _rival(scores, chain),
    ]
    values = np.array([*ranked, *([0.0] * len(chained) if general else chained)])
    if chain.through is None and not general:
        values[[*PATTERNED]] = 0.0
        values[[*PATTERNED]] = expected @ values
    return values


def _rival(scores: Floats, chain: Chain) -> float:
    leading = np.flatnonzero(chain.leading[:, EVIDENCE_PASSAGES:].any(axis=0))
    if not len(leading):
        return 0.0
    return float(sigmoid(scores[EVIDENCE_PASSAGES + leading[0]] - scores[EVIDENCE_PASSAGES - 1]))


def _mass(scores: Floats) -> float:
    if len(scores) <= TWO_HOP_PASSAGES:
        return MOST_LOG_ODDS
    best, rest = (
        float(np.logaddexp.reduce(some)) for some in (scores[:TWO_HOP_PASSAGES], scores[TWO_HOP_PASSAGES:])
    )
    return min(max(best - rest, -MOST_LOG_ODDS), MOST_LOG_ODDS)


def compute_word_coverage(
    words: Sequence[Mapping[int, float]], every: Mapping[int, float], absent: float = 0.0
) -> float:
    """Return the share of the question's words, by weight, in the first passages, in [0, 1]; 1 if it has none.

    Args:
        words: of each of these passages, word -> weight.
        every: the same of all candidates.
        absent: weight of the words that no candidate has.
    """
    total = math.fsum(every.values()) + absent
    passage_words = {word for of_passage in words for word in of_passage}
    return math.fsum(every[word] for word in passage_words) / total if total > 0 else 1.0


def probability(features: Floats, weights: Floats) -> float:
    """Return the probability that the first five hold all the evidence, in [0, 1]."""
    return float(sigmoid(features @ weights))


def label_evidence(
    verdict: LoggedVerdict, named: Iterable[tuple[int, int]], first: Collection[int], *, known: bool = True
) -> int | None:
    """Label an answer by a complete verdict: 1 if all evidence is in the first passages, 0 if not, None if unknown.

    - 0: retrieval failed; or a supported passage, missed ones included, is not among the first; or the verdict is
      complete, rejects, and supports nothing.
    - 1: the verdict is complete, and all that it supports is among the first.

    Args:
        named: (passage, y) of the sentences that it speaks of.
        first: the passages that came first, at most ``EVIDENCE_PASSAGES``.
        known: whether it is known of every sentence that it speaks of in which passage it is.
    """
    supported = {passage for passage, target in verdict.passage_targets(named).items() if target}
    if verdict.retrieval_success is False or not supported <= set(first):
        return 0
    if not verdict.complete or not known:
        return None
    if supported:
        return 1
    return 0 if verdict.rejects and verdict.retrieval_success is None else None


def label_answer(
    verdict: LoggedVerdict, named: Iterable[tuple[int, int]], first: Collection[int], *, known: bool = True
) -> int | None:
    """Label an answer by any verdict: 1 if it was enough, 0 if not, None if the verdict does not say.

    Beyond ``label_evidence``, a partial verdict confirms the answer if all that it supports is among the first
    passages: somebody who misses evidence names it. A thumb down without a known reason denies it. A click
    and a partial verdict on a session say neither.

    Args:
        named, first, known: as of ``label_evidence``.
    """
    if verdict.partial and verdict.source in ("click", "session"):
        return None
    targets = list(named)
    outcome = label_evidence(verdict, targets, first, known=known)
    if outcome is not None or not verdict.partial:
        return outcome
    if verdict.rating == "down":
        return None if verdict.reason in REASONS else 0
    return 1 if known and any(verdict.passage_targets(targets).values()) else None


def build_observation(features: Floats, outcome: int, prior: WeightBelief, noise: float) -> WeightObservation:
    """Compute the observation of the weights by one verdict.

    Args:
        features: of the answer, (k,).
        outcome: y, 1 if the first five held all the evidence, else 0.
        prior: over which the parabola is the best.
        noise: R > 0; 1 for a verdict that is taken at its word.

    Raises:
        ValueError: the noise is not positive, or ``outcome`` is neither 0 nor 1.
    """
    if not noise > 0:
        raise ValueError("observation noise must be positive")
    if outcome not in (0, 1):
        raise ValueError("a verdict's outcome must be 0 or 1")
    odds = float(features @ prior.mean)
    touching = math.hypot(odds, math.sqrt(float(features @ np.linalg.solve(prior.precision, features))))
    curvature = math.tanh(touching / 2.0) / (2.0 * touching) if touching > SMALLEST_XI else 0.25
    evidence = WeightEvidence(
        (outcome - 0.5 - curvature * odds) / noise * features, curvature / noise * np.outer(features, features)
    )
    return WeightObservation(evidence, abs(outcome - probability(features, prior.mean)))


def build_counted_observation(
    features: Floats, outcome: int, prior: WeightBelief, noise: float
) -> WeightObservation:
    """Compute the observation of the weights by one verdict on an answer, with counts.

    Its evidence is bounded by ``LARGEST_LEVERAGE``. It has one row and column more than there are features: the
    last number of ``information`` is added to ``confirmed``, that of ``precision`` to ``judged``.

    Args:
        features, outcome, prior, noise: as of ``build_observation``.

    Raises:
        ValueError: as ``build_observation``.
    """
    observation = build_observation(features, outcome, prior, noise)
    size = len(features)
    leverage = float(features @ np.linalg.solve(prior.precision, features))
    weight = min(1.0, LARGEST_LEVERAGE / leverage)
    information, precision = np.zeros(size + 1), np.zeros((size + 1, size + 1))
    information[:size] = weight * observation.evidence.information
    precision[:size, :size] = weight * observation.evidence.precision
    information[size], precision[size, size] = outcome / noise, 1.0 / noise
    return WeightObservation(WeightEvidence(information, precision), observation.surprise)


def compute_mean(model: str, prior: WeightBelief, evidence: WeightEvidence) -> Floats:
    """Compute the mean of any model's weights, (k,), after the evidence of all verdicts.

    Args:
        prior: over k weights.
        evidence: sum of the model's terms; of sufficiency k + 1, see ``build_counted_observation``.
    """
    if model == "sufficiency":
        return compute_learned_mean(prior, evidence)
    return posterior(prior, evidence).mean


def compute_learned_mean(prior: WeightBelief, evidence: WeightEvidence) -> Floats:
    """Mean of the weights after the evidence of all verdicts, (k,).

    Args:
        prior: over k features, the first of which is 1.
        evidence: sum of what ``build_counted_observation`` returns, (k + 1,) and (k + 1, k + 1).
    """
    size = len(prior.mean)
    confirmed, judged = float(evidence.information[size]), float(evidence.precision[size, size])
    counts = (max(confirmed, 0.0), max(judged - confirmed, 0.0))
    share = math.prod(count / (count + VERDICTS_FOR_HALF_WEIGHT) for count in counts)
    if share <= LEAST_SHARE:
        return prior.mean
    counted = WeightEvidence(share * evidence.information[:size], share * evidence.precision[:size, :size])
    mean = posterior(prior, counted).mean
    # The first feature is 1, so the first row of the precision is the weighted sum of the judged answers' features.
    centre = counted.precision[0] / counted.precision[0, 0]
    mean[0] -= centre @ (mean - prior.mean)
    return mean
