"""A rating as the log keeps it: the sentences that it speaks of, each with a probability."""

from engram.context.errors import InvalidRequestError
from engram.core.filter.logged_verdict import LikelySupport, LoggedVerdict
from engram.core.filter.ratings import RatingMeaning, find_meaning
from engram.services.learning.incoming_verdict import (
    IncomingRating,
    ResolvedNames,
    Verdict,
    choose_likely_supports,
    find_shown_sentences,
    passage_ids,
    sentence_ids,
)


def build_verdict(verdict: Verdict, rating: IncomingRating, names: ResolvedNames) -> LoggedVerdict:
    """The rating as a verdict of the log. Whatever it does not name stays unknown.

    Raises:
        InvalidRequestError: a cited sentence or passage does not exist, or the combination has no meaning.
    """
    try:
        says = find_meaning(rating.rating, rating.reason, has_citations=bool(rating.cited))
    except ValueError as error:
        raise InvalidRequestError(f"{error}.") from error
    passages = passage_ids(rating.passages, names)
    sentences = find_shown_sentences(sentence_ids(rating.sentences, names), names)
    supports = sentences if says.target == 1 else []
    helpful = passages if says.target == 1 else []
    likely = choose_likely_supports(helpful, names, supports, ())
    rejects: dict[int, float] = {}
    if says.target == 1 and not rating.cited:
        likely = tuple(
            LikelySupport(one, probability) for one, probability in _choose_first_sentences(says, names).items()
        )
    elif says.target == 0 and not rating.cited:
        rejects = _choose_first_sentences(says, names)
    elif says.target == 0:
        cited = [sentence for passage in passages for sentence, _ in names.texts.get(passage, ())]
        rejects = dict.fromkeys(sorted({*sentences, *cited}), says.cited)
    return LoggedVerdict(
        supports=tuple(supports),
        rejects=tuple(rejects),
        partial=True,
        retrieval_success=says.retrieval_success,
        generation_success=says.generation_success,
        passages=tuple(helpful),
        likely=likely,
        confidence=verdict.confidence,
        examined=tuple(rejects.values()) if min(rejects.values(), default=1.0) < 1.0 else (),
        rating=rating.rating,
        reason=rating.reason,
    )


def _choose_first_sentences(says: RatingMeaning, names: ResolvedNames) -> dict[int, float]:
    """Sentence that stands for a first passage -> probability that the rating speaks of it, in id order."""
    chosen: dict[int, float] = {}
    for rank, passage in enumerate(names.first, start=1):
        nearest, probability = names.nearest.get(passage, ()), says.compute_examination(rank)
        if nearest and probability > 0:
            chosen[nearest[0]] = probability
    return dict(sorted(chosen.items()))
