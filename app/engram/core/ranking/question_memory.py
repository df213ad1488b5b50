"""Question memory: what supported past questions with the same need is evidence for this one.

A recalled passage competes with the base ranking instead of going in front of it. It is evidence if either is
right. Once it is more probable than not that the present question has the need of past ones, other passages lose:

    recalled passages:  p = 1 - (1 - p_base) (1 - p_recall)     p_recall = P(same need) · reliability of the support
    other passages:     p = p_base · min(1, 2 (1 - m))          m: the highest p_recall
    rejected passages:  odds of that p times (1 - p_rejection) exp(-w l)

p_rejection is P(same need) · net rejection. A support names what helped and is seldom wrong. A rejection says what
one judge did not find; others often do, so its net alone is believed: such a judge says it of all passages that are
no evidence, and of 1 - net of those that are. With p_rejection worth n full rejections by one trusted judge, w is
2n - 1 from n = 1/2 to 1, so that nothing jumps, and l is the lead, in log odds, of the best passage with w > 0 over
the best with w = 0. So a full rejection takes all of a lead: the passage is not first again. Half a one, as by a
bare thumb, takes none.

p_base is the logistic function of the score, less a reference: the score at which as many passages are expected to
be evidence as answered judged questions on average, of those whose need was judged twice. So where one passage
answers, two of equal score share the belief, and where evidence is a set they do not. Passages that are neither
recalled nor rejected keep their order.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from engram.core.learning.states import SUPPORT_BEFORE_VERDICTS

Floats = NDArray[np.float64]

SUPPORT_EXPONENT = 3.0
"""A support is wrong with probability (1 - net support)^3. One full verdict of a trusted judge leaves a
net support of 2/3, so it is right 26 times of 27."""
LEAST_RECALL = 0.1
"""A recall of less probability is left out: what is known of the two questions speaks against the same need."""
EVEN_ODDS = 0.5
"""A recalled sentence joins the first hop, and leads on from it, if it is more likely evidence than not."""
LEAST_VOTING_SUPPORT = 1.0 - (1.0 - EVEN_ODDS) ** (1.0 / SUPPORT_EXPONENT)
"""Net support of a passage's sentences from which on it is more likely evidence than not."""
MOST_CERTAIN = 1.0 - 1e-9
LEAST_DOUBT = 1e-12
LARGEST_SHIFT = 20.0
BISECTIONS = 30


def compute_reliability(net: float) -> float:
    """Probability that a sentence is evidence of the question that verdicts supported it for, in [0, 1].

    Args:
        net: net support, see ``net_support``, in [0, 1].
    """
    return float(1.0 - (1.0 - net) ** SUPPORT_EXPONENT)


def compute_recall_probabilities(supports: Iterable[tuple[int, float, float]]) -> dict[int, float]:
    """Sentence -> probability in [0, 1] that it is evidence, by what supported past questions.

    The maximum over past questions, so that many middling neighbours do not outweigh the question itself. By
    rejections and their passages: the probability that each is none.

    Args:
        supports: (sentence, probability that the past question has the same need, reliability), both in [0, 1].
    """
    probabilities: dict[int, float] = {}
    for sentence, same_need, reliability in supports:
        probability = same_need * reliability
        if probability >= LEAST_RECALL and probability > probabilities.get(sentence, 0.0):
            probabilities[sentence] = probability
    return probabilities


def select_likely(probabilities: Mapping[int, float]) -> dict[int, float]:
    """Select the sentences that are more likely evidence than not, each with how much more likely, in (0, 1]."""
    return {sentence: 2.0 * one - 1.0 for sentence, one in probabilities.items() if one > EVEN_ODDS}


def collect_passage_probabilities(
    probabilities: Mapping[int, float], holders: Mapping[int, int], stand_in_by_passage: Mapping[int, int]
) -> dict[int, float]:
    """Passage -> the highest probability of its sentences; a duplicate's counts for the passage that stands for it.

    Args:
        probabilities: of recall, by sentence.
        holders: sentence -> its passage; others are left out.
        stand_in_by_passage: left-out passage -> the passage that stands for it.
    """
    best: dict[int, float] = {}
    for sentence, probability in probabilities.items():
        if sentence in holders:
            passage = stand_in_by_passage.get(holders[sentence], holders[sentence])
            best[passage] = max(probability, best.get(passage, 0.0))
    return best


def has_vote(net: float, of_question: float) -> bool:
    """Whether a passage that supports a past question counts in votes.

    It does if it is more likely evidence than not, or has half of all support of the question: who judged
    named at most one other. A thumb up without citations supports five passages, four of which mostly are
    none. If they voted, questions of different needs would seem to share evidence.

    Args:
        net: support of its sentences, see ``net_support``, summed.
        of_question: that of all sentences.
    """
    return net >= LEAST_VOTING_SUPPORT or 0.0 < of_question <= 2.0 * net


def net_support(support: float, perplexity: float) -> float:
    """A support less what rejections say against it, in [0, 1].

    A rejection moves a support towards 0, where the belief before verdicts may be as well. Counted as -1 instead,
    the same verdicts give (1 - π)(2 · mean - 1) in place of (1 - π) · mean: the same where all supported, and
    nothing where as many rejected, so that one wrong verdict among several recalls nothing.
    """
    return min(1.0, max(0.0, 2.0 * weigh_verdicts(support, perplexity) - (1.0 - perplexity)))


def net_acceptance(acceptance: float, perplexity: float) -> float:
    """Compute how surely judges accept a sentence, less what rejects it, in [-1, 1]; below 0 they reject it.

    As ``net_support``, where each support counts in full: see ``learning.sentence_acceptance``.
    """
    return min(1.0, 2.0 * weigh_verdicts(acceptance, perplexity) - (1.0 - perplexity))


def weigh_verdicts(support: float, perplexity: float) -> float:
    """Weigh what verdicts say of a support, without the belief before them: (1 - π) · the mean verdict, in [0, 1].

    Each verdict y moves a support by the gain, s' = (1 - K) s + K y, which shrinks the perplexity by 1 - K as well.
    So s = (1 - π) · mean + π · the belief before verdicts, but for the process noise.
    """
    return support - perplexity * SUPPORT_BEFORE_VERDICTS


def compute_recall_lifts(
    scores: Floats, probabilities: Floats, evidence_count: float, rejections: Floats | None = None
) -> Floats:
    """Change of each passage's score by recall, (..., n); 0 where nothing is recalled or rejected.

    Scores are log odds but for a constant (``weight_beliefs``). A passage that is not recalled never gains. Where a
    passage is both recalled and rejected, by two questions, the more probable of the two counts.

    Args:
        scores: of all candidates before recall, (..., n), n > 0.
        probabilities: of each by recall, in [0, 1], (n,).
        evidence_count: passages that are evidence of a question on average, > 0.
        rejections: probability that each is no evidence, in [0, 1], (n,); None: no passage is rejected.
    """
    rejections = np.zeros(len(probabilities)) if rejections is None else rejections
    outweighed = rejections > probabilities
    probabilities, rejections = np.where(outweighed, 0.0, probabilities), np.where(outweighed, rejections, 0.0)
    strongest = float(probabilities.max())
    if not strongest and not rejections.any():
        return np.zeros(scores.shape)
    reference = find_even_odds(scores, evidence_count)[..., None]
    log_base, log_base_denied = -np.logaddexp(0.0, reference - scores), -np.logaddexp(0.0, scores - reference)
    log_denied = np.log1p(-np.minimum(probabilities, MOST_CERTAIN)) + log_base_denied
    log_recalled = np.log(-np.expm1(log_denied))
    log_kept = log_base + np.log(min(1.0, 2.0 * (1.0 - min(strongest, MOST_CERTAIN))))
    log_lost = log_kept - np.log1p(-np.exp(np.minimum(log_kept, -LEAST_DOUBT)))
    lifts = reference + np.where(probabilities > 0, log_recalled - log_denied, log_lost) - scores
    lifts = lifts if strongest else np.zeros(scores.shape)  # but for rounding
    return np.asarray(lifts + _compute_losses(scores + lifts, rejections))


def _compute_losses(scores: Floats, rejections: Floats) -> Floats:
    """Change of each passage's score by rejections, (..., n), at most 0.

    Args:
        scores: of each passage before rejections, (..., n).
        rejections: see ``compute_recall_lifts``.
    """
    unsure = 1.0 - np.minimum(rejections, MOST_CERTAIN)
    full_rejections = rejections / unsure  # one leaves a net of one half
    shares = np.clip(2.0 * full_rejections - 1.0, 0.0, 1.0)
    losses = np.log(unsure)
    if (shares > 0).any() and not (shares > 0).all():
        best_other = (scores + losses)[..., shares == 0].max(axis=-1, keepdims=True)
        lead = scores[..., shares > 0].max(axis=-1, keepdims=True) - best_other
        losses = losses - shares * np.maximum(lead, 0.0)
    return np.broadcast_to(losses, scores.shape)


def find_even_odds(scores: Floats, evidence_count: float) -> Floats:
    """Find the score at which a passage is evidence as probably as not, (..., n) -> (...).

    It is the score c for which the probabilities sigmoid(score - c) of all passages sum to ``evidence_count``, or
    to half of the passages if these are fewer than twice as many.
    """
    count = min(evidence_count, scores.shape[-1] / 2)
    best = scores.max(axis=-1, keepdims=True)
    odds = np.exp(scores - best)
    low, high = scores.min(axis=-1) - best[..., 0] - LARGEST_SHIFT, np.full(scores.shape[:-1], LARGEST_SHIFT)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        too_many = (odds / (odds + np.exp(middle)[..., None])).sum(axis=-1) > count
        low, high = np.where(too_many, middle, low), np.where(too_many, high, middle)
    return np.asarray(best[..., 0] + (low + high) / 2.0)


def compute_ungated_support(support: float, perplexity: float) -> float:
    """Compute the share of verdicts that supported, however few they are. For the evaluation only."""
    return min(1.0, weigh_verdicts(support, perplexity) / (1.0 - perplexity)) if perplexity < 1 else support
