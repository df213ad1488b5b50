"""Relevance scores in [0, 1] of passages and texts, for clients that cut answers off at a threshold."""

from collections.abc import Sequence

from engram.services.question.answer import PassageAnswer
from engram.services.question.query import Strategy


def compute_relevance_scores(passages: Sequence[PassageAnswer], strategy: Strategy) -> list[float]:
    """Compute the relevance of each passage of an answer, in [0, 1], in the order of the answer.

    Each passage has its own: the probability that it is evidence where features rank, and its cosine with the
    question where cosines do. Other rankings have no scale, so a score is given as its share of the highest.
    """
    probabilities = [passage.probability for passage in passages if passage.probability is not None]
    if len(probabilities) == len(passages):
        return probabilities
    highest = 1.0 if strategy == "dense" else max(passage.score for passage in passages)
    return [_clip(passage.score / highest) if highest > 0 else 0.0 for passage in passages]


def merge_scores(encoded: Sequence[float], learned: Sequence[int]) -> list[float]:
    """Merge two rankings of texts, where a collection ranks some of them and the encoder all; return their scores.

    The ranked texts take the places that the encoder gives to all of them together, in their own order. So the
    scores of the ranked texts are those of these places.

    Args:
        encoded: similarity of each text and the question by the encoder, (n,).
        learned: the ranked texts, as places in ``encoded``, best first.

    Returns:
        (n,), in [0, 1].
    """
    scores = [_clip(similarity) for similarity in encoded]
    falling = sorted((scores[place] for place in learned), reverse=True)
    for place, score in zip(learned, falling, strict=True):
        scores[place] = score
    return scores


def _clip(value: float) -> float:
    return min(max(value, 0.0), 1.0)
