"""Vote of judged questions: the probability that a passage is evidence, by the judged questions near this one.

Each of the nearest judged questions votes for the passages that verdicts support for it, with the weight

    w_j = exp(nearness_j / VOTE_WIDTH) · likelihood ratio of its contrasts

Five features describe a passage: a constant, the log odds of the same need of the question that supports it and is
most likely to have it (``same_need``), the log odds of its share of all weights, the logarithm of one plus its
weight, in units of the nearest question's, and how much of the present question's words it has. The last one parts
passages about one person in several years, which near questions name alike. A logistic regression maps them to a
probability.

The collection's own judged questions teach the regression. Each is left out in turn: do its neighbours vote for its
evidence? As far as judged questions lack the repeated needs that people ask for, asked questions without verdicts
teach as well: a passage is their evidence as probably as ``repeated_needs`` tells. Before that, the log odds of the
same need count as they are, and nothing else (``PRIOR_VOTE``, with a Gaussian prior). So a vote says much where
the same needs are asked again and again, and nothing where each question needs something else.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.question_priors import PRIOR_VOTE, PRIOR_VOTE_DEVIATIONS
from engram.core.ranking.weight_beliefs import sigmoid

Floats = NDArray[np.float64]

NEIGHBOURS = 16
"""Judged questions that vote."""
VOTE_WIDTH = 0.7
"""Width of the kernel in nearness, in standard units of the collection."""
WORDS = 4
"""Place of the feature of words."""
LEAST_SHARE = 0.05
"""Added to the share of words that a passage has and to that which it lacks, so that their log odds are finite."""
CANDIDATES = 4
"""Passages of each left-out question, those with most weight, that teach the regression."""
LARGEST_LOG_ODDS = 8.0
"""Log odds of the same need are clipped here for the regression."""
SHARE_PSEUDO_WEIGHT = 0.25
"""Weight that is added to a passage's votes and to those against it: a single vote is no certainty."""
NEAR_SHARE = 0.05
"""Share of the largest weight from which on a question counts as near."""
THINNING_PSEUDO_COUNT = 0.1
NEWTON_STEPS = 50
LARGEST_STEP = 2.0
"""Largest change of a weight in one step of Newton's method."""


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Judged questions near to a question.

    Attributes:
        evidence: passages that verdicts support for each, n of them.
        log_odds: of the same need, by each question alone, (n,).
        nearness: in standard units, (n,).
        log_ratios: log likelihood ratios of contrasts, summed for each, (n,).
        word_shares: passage of ``evidence`` -> share of the question's words that it has, each weighted by its idf,
            in [0, 1]; NaN where this says nothing.
    """

    evidence: Sequence[AbstractSet[int]]
    log_odds: Floats
    nearness: Floats
    log_ratios: Floats
    word_shares: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class PassageVote:
    """Vote on one passage.

    Attributes:
        probability: that the passage is evidence, in [0, 1].
        supporters: places of the near judged questions that it is evidence of.
        others: near judged questions that were answered by other passages.
    """

    probability: float
    supporters: frozenset[int]
    others: int


@dataclass(frozen=True, slots=True)
class VoteWeights:
    """Weights of the regression.

    Attributes:
        weights: of the five features, (5,).
        questions: judged questions that taught them.
        words: mean log odds of the share of words; a share that says nothing counts as this.
    """

    weights: Floats
    questions: int
    words: float = 0.0

    def count(self, neighbours: Neighbours) -> dict[int, PassageVote]:
        """Return passage -> vote, for each passage that a neighbour supports."""
        ballot = _Ballot(neighbours)
        passages = list(ballot.weights)
        near = ballot.find_near()
        features = ballot.compute_features(passages)
        features[:, WORDS] = np.nan_to_num(features[:, WORDS] - self.words)
        probabilities = sigmoid(features @ self.weights).tolist()
        return {
            passage: PassageVote(probability, supporters, len(near) - len(supporters))
            for passage, probability in zip(passages, probabilities, strict=True)
            for supporters in (near.intersection(ballot.places[passage]),)
        }


UNTAUGHT = VoteWeights(PRIOR_VOTE, 0)


@dataclass(frozen=True, slots=True)
class AskedQuestions:
    """Asked questions that nobody judged.

    Attributes:
        neighbours: judged questions near to each.
        log_odds: that each neighbour has the need of the asked question, by ``repeated_needs``, (n,) for each.
        weight: what each counts beside a judged question that is left out, in [0, 1].
    """

    neighbours: Sequence[Neighbours] = ()
    log_odds: Sequence[Floats] = ()
    weight: float = 0.0


NONE_ASKED = AskedQuestions()


class _Ballot:
    """Weights of all votes on one question.

    Attributes:
        kernel: weight of each neighbour, the largest being 1, (n,); 0 of those without evidence.
        weights: passage -> summed weight of its supporters, in the order of the neighbours.
        places: passage -> its supporters' places.
    """

    def __init__(self, neighbours: Neighbours, own: AbstractSet[int] = frozenset(), thinning: float = 1.0) -> None:
        """Weigh the votes; those of neighbours that share no evidence with ``own`` are thinned, if there is any."""
        self._log_odds = np.clip(neighbours.log_odds, -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS)
        votes = np.array([bool(evidence) for evidence in neighbours.evidence], dtype=np.bool_)
        exponents = np.where(votes, neighbours.nearness / VOTE_WIDTH + neighbours.log_ratios, -np.inf)
        self.kernel = np.exp(exponents - exponents.max()) if votes.any() else np.zeros(len(votes))
        if own and thinning < 1.0:
            apart = np.array([not evidence & own for evidence in neighbours.evidence], dtype=np.bool_)
            self.kernel = np.where(apart, thinning * self.kernel, self.kernel)
        self._word_shares = neighbours.word_shares
        self.places: dict[int, list[int]] = {}
        self.weights: dict[int, float] = {}
        self._total = 0.0
        for place, (evidence, weight) in enumerate(zip(neighbours.evidence, self.kernel.tolist(), strict=True)):
            self._total += weight
            for passage in evidence:
                self.places.setdefault(passage, []).append(place)
                self.weights[passage] = self.weights.get(passage, 0.0) + weight

    def list_heaviest(self) -> list[int]:
        """List the ``CANDIDATES`` passages with most weight, equal ones in id order."""
        return sorted(self.weights, key=lambda passage: (-self.weights[passage], passage))[:CANDIDATES]

    def find_near(self) -> frozenset[int]:
        """Find the places of the neighbours whose weight is not negligible beside the largest, which is 1."""
        return frozenset(np.flatnonzero(self.kernel >= NEAR_SHARE).tolist())

    def find_largest(self, log_odds: Floats, passages: Sequence[int]) -> Floats:
        """Find the largest of the supporters' log odds of each passage, (m,), for those of neighbours, (n,)."""
        return np.array([log_odds[self.places[passage]].max() for passage in passages])

    def compute_features(self, passages: Sequence[int]) -> Floats:
        """Features of the passages, (n, 5)."""
        weights = np.array([self.weights[passage] for passage in passages])
        against = np.maximum(self._total - weights, 0.0)
        log_odds = self.find_largest(self._log_odds, passages)
        share = np.log(weights + SHARE_PSEUDO_WEIGHT) - np.log(against + SHARE_PSEUDO_WEIGHT)
        held = np.array([self._word_shares[passage] for passage in passages])
        words = np.log(held + LEAST_SHARE) - np.log(1.0 - held + LEAST_SHARE)
        return np.column_stack([np.ones(len(passages)), log_odds, share, np.log1p(weights), words]).reshape(-1, 5)


def learn_weights(
    left_out: Sequence[tuple[AbstractSet[int], Neighbours]], asked: AskedQuestions = NONE_ASKED
) -> VoteWeights:
    """Learn the weights of the regression by leaving judged questions out.

    A pure function of what is judged and asked: the order of verdicts does not matter. The weights are those of
    largest posterior density, found by Newton's method.

    Args:
        left_out: evidence of each question that is left out, and its neighbours among all other judged questions.
        asked: what stands for the repeated needs that judged questions lack.
    """
    thinning = compute_thinning(left_out)
    features, labels = [np.zeros((0, len(PRIOR_VOTE)))], [np.zeros(0)]
    for own, neighbours in left_out:
        ballot = _Ballot(neighbours, own, thinning)
        passages = ballot.list_heaviest()
        features.append(ballot.compute_features(passages))
        labels.append(np.array([float(passage in own) for passage in passages]))
    taught = sum(len(one) for one in labels)
    for neighbours, log_odds in zip(asked.neighbours, asked.log_odds, strict=True):
        ballot = _Ballot(neighbours)
        passages = ballot.list_heaviest()
        features.append(ballot.compute_features(passages))
        labels.append(sigmoid(ballot.find_largest(log_odds, passages)))
    rows = np.concatenate(features)
    counts = np.where(np.arange(len(rows)) < taught, 1.0, asked.weight)
    words = float(np.average(rows[:, WORDS], weights=counts)) if counts.any() else 0.0
    rows[:, WORDS] -= words
    return VoteWeights(_fit_logistic(rows, np.concatenate(labels), counts), len(left_out), words)


def compute_thinning(left_out: Sequence[tuple[AbstractSet[int], Neighbours]]) -> float:
    """Weight of the votes of other needs while a question is left out, in (0, 1].

    To leave a question out takes a supporter from its own evidence and from no other. Among questions that people
    asked by chance this is right: who asked next met one question more of each need. But where every need was
    judged equally often, as in a collection of test questions, it puts a question's own evidence at a disadvantage
    that no new question has. Let n be the judged questions of a passage. By chance, a left-out question meets as
    many others of its need as needs have on average, once they were met at all (Good-Turing):

        E[n²]/E[n] - 1 = E[n] · (1 - share of questions whose passage no other question has)

    What the left side lacks of the right one is taken from the votes of other needs.
    """
    counts = np.array(
        [
            1 + sum(passage in evidence for evidence in neighbours.evidence)
            for own, neighbours in left_out
            for passage in own
        ],
        dtype=np.float64,
    )
    if not len(counts):
        return 1.0
    # Drawn by question, a passage comes n times: the mean over passages is the harmonic one.
    met, mean = counts.mean() - 1.0, 1.0 / (1.0 / counts).mean()
    expected = mean * (counts > 1).mean()
    return float(min(1.0, (met + THINNING_PSEUDO_COUNT) / (expected + THINNING_PSEUDO_COUNT)))


def _fit_logistic(features: Floats, labels: Floats, counts: Floats) -> Floats:
    """Weights of largest posterior density, (5,).

    Args:
        features: (n, 5).
        labels: probabilities of evidence, (n,).
        counts: what each row counts, (n,).
    """
    precision = PRIOR_VOTE_DEVIATIONS**-2.0
    weights = PRIOR_VOTE
    for _ in range(NEWTON_STEPS):
        probabilities = sigmoid(features @ weights)
        gradient = features.T @ (counts * (labels - probabilities)) - precision * (weights - PRIOR_VOTE)
        spread = counts * probabilities * (1.0 - probabilities)
        curvature = (features * spread[:, None]).T @ features + np.diag(precision)
        step = np.linalg.solve(curvature, gradient)
        largest = float(np.abs(step).max())
        weights = weights + step * min(1.0, LARGEST_STEP / max(largest, 1e-12))
        if largest < 1e-9:
            break
    return weights
