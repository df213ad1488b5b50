"""Denied answers: what judges said of earlier answers to the same question (ours).

The weights of sufficiency learn from all verdicts together, slowly. A verdict that an answer was not enough also
says so of the next answer to this question. Each judge's last judgement of the question counts with the gain
K = 1 - exp(-1 / R), the probability that the judge is right rather than says nothing:

    p <- p · Π (1 - K_i)^(1 - 2 y_i)       y: 1 enough, 0 not; at most as it was

K is capped by the judge's daily share. Confirmations only take denials back: what they add is learned from
evidence, see ``sufficiency_memory``.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

LARGEST_GAIN = 1.0 - 1e-3
"""Largest gain of one judgement: no judge makes an answer impossible."""


@dataclass(frozen=True, slots=True)
class AnswerJudgement:
    """A judge's last judgement of the answers to a question.

    Attributes:
        enough: whether the answer was enough.
        noise: R > 0.
        share: the judge's daily cap, in [0, 1].
    """

    enough: bool
    noise: float
    share: float


def compute_undenied_share(judgements: Iterable[AnswerJudgement]) -> float:
    """Compute what the judgements leave of the probability that an answer to this question is enough, in (0, 1].

    Args:
        judgements: one per judge.
    """
    change = 0.0
    for one in judgements:
        gain = min(-math.expm1(-1.0 / one.noise), one.share, LARGEST_GAIN)
        change += math.log1p(-gain) * (-1.0 if one.enough else 1.0)
    return math.exp(min(0.0, change))
