"""Experience recall: what supported nearby past questions is a prior for this one.

The look-up is gated. Without the gate, verdicts on one question pull the passages of every other question along:
recall@5 of unrelated questions falls by a third.
"""

from collections.abc import Iterable


def nearness(similarity: float, gate: float) -> float:
    """How much a past question speaks for this one: 0 at the gate, 1 for the same question, linear between.

    Args:
        similarity: cosine of the two questions.
        gate: in [0, 1).

    Raises:
        ValueError: the gate is out of its range.
    """
    if not 0 <= gate < 1:
        raise ValueError("the gate must lie in [0, 1)")
    return min(1.0, max(0.0, (similarity - gate) / (1.0 - gate)))


def recall_priors(supports: Iterable[tuple[int, float, float]], gate: float) -> dict[int, float]:
    """Sentence -> prior in [0, 1]: its surest support, weighted by how near that past question is.

    The maximum, not the sum, so that many middling neighbours do not outweigh the question itself.

    Args:
        supports: (sentence, similarity of the past question, support in [0, 1]).
        gate: see ``nearness``.
    """
    priors: dict[int, float] = {}
    for sentence, similarity, support in supports:
        prior = nearness(similarity, gate) * support
        if prior > priors.get(sentence, 0.0):
            priors[sentence] = prior
    return priors
