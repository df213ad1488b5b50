"""Relevance scores between 0 and 1 of ranked passages, for clients that cut answers off at a threshold.

A ranking score has no fixed scale, and a cosine does not know what verdicts taught. So the ranking decides on the
order, and the cosines of the ranked passages, sorted, are the scores. A threshold then keeps the first passages,
as many as have that cosine.
"""

from collections.abc import Sequence

from engram.services.question.answer import PassageAnswer


def relevance_scores(passages: Sequence[PassageAnswer]) -> list[float]:
    """The score of each passage, in [0, 1], falling with its rank.

    Where the ranking does not go by cosines, scores are shares of the highest ranking score.

    Args:
        passages: best first.
    """
    similarities = [passage.similarity for passage in passages if passage.similarity is not None]
    if len(similarities) == len(passages):
        return sorted((_clip_score(similarity) for similarity in similarities), reverse=True)
    highest = max((passage.score for passage in passages), default=0.0)
    if highest <= 0:
        return [0.0] * len(passages)
    return sorted((_clip_score(passage.score / highest) for passage in passages), reverse=True)


def align_scores(encoded: Sequence[float], learned: Sequence[int]) -> list[float]:
    """The score of each text where a collection ranks some of them and the encoder the others.

    The ranked texts take the places that the encoder gives to all of them together, in their own order.

    Args:
        encoded: similarity of each text and the question by the encoder, (n,).
        learned: the ranked texts, as places in ``encoded``, best first.

    Returns:
        (n,), in [0, 1].
    """
    scores = [_clip_score(similarity) for similarity in encoded]
    falling = sorted((scores[place] for place in learned), reverse=True)
    for place, score in zip(learned, falling, strict=True):
        scores[place] = score
    return scores


def _clip_score(value: float) -> float:
    return min(max(value, 0.0), 1.0)
