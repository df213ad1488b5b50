"""Resolution of an incoming verdict to what the log keeps: see ``core.filter.logged_verdict``."""

from collections.abc import Collection, Mapping, Sequence

from engram.context.errors import InvalidRequestError
from engram.core.filter.logged_verdict import NEAREST_SENTENCE_PROBABILITY, LikelySupport, LoggedVerdict
from engram.core.filter.ratings import Rating, RatingMeaning, find_meaning
from engram.services.learning.incoming_verdict import Verdict
from engram.services.learning.verdict_names import VerdictNames, look_up_names
from engram.storage.database import Reader


def resolve_verdict(reader: Reader, verdict: Verdict) -> LoggedVerdict:
    """Resolve a verdict to the form that the log keeps.

    What the verdict says about a left-out duplicate counts for the passage that stands for it. That passage was
    shown, and would count as rejected otherwise.

    Raises:
        InvalidRequestError: a named sentence or passage does not exist, or is both supported and rejected; or a
            rating and its reason have no meaning together.
    """
    names = look_up_names(reader, verdict)
    if verdict.rating is not None:
        return _resolve_rating(verdict, verdict.rating, names)
    return _resolve_names(verdict, names)


def resolve_without_lookup(verdict: Verdict) -> LoggedVerdict | None:
    """Resolve a verdict without the database.

    The result holds if its sentences exist and none belongs to a left-out duplicate. The caller must check both.

    Returns:
        None for a rating, for a verdict that names anything but sentence ids, and if one id is both supported and
        rejected.
    """
    supports = {name.sentence_id for name in (*verdict.supporting, *verdict.missed)}
    rejects = {name.sentence_id for name in verdict.rejected}
    named = supports | rejects
    if verdict.rating is not None or verdict.supporting_passages or None in named or supports & rejects:
        return None
    return _resolve_names(verdict, VerdictNames({sentence for sentence in named if sentence is not None}, {}, {}))


def _resolve_names(verdict: Verdict, names: VerdictNames) -> LoggedVerdict:
    """Make the logged verdict from the names that were resolved.

    Raises:
        InvalidRequestError: a named sentence or passage does not exist, or is both supported and rejected.
    """
    helpful = names.list_passages(verdict.supporting_passages)
    missed = names.list_sentences(verdict.missed)
    supports = sorted({*names.list_sentences(verdict.supporting), *missed})
    reject_probabilities = names.collect_examined(verdict.rejected)
    both = sorted(set(supports) & reject_probabilities.keys())
    if both:
        raise InvalidRequestError(f"Sentences {both} are both supported and rejected.")
    spared = {*helpful, *(names.twins[one][0] for one in supports if one in names.twins)}
    supports = names.list_shown(supports)
    reject_probabilities = _collect_rejected(reject_probabilities, supports, names)
    missed = [one for one in missed if one in supports]
    return LoggedVerdict(
        supports=tuple(supports),
        rejects=tuple(reject_probabilities),
        missed=tuple(missed),
        partial=verdict.partial,
        retrieval_success=verdict.retrieval_success,
        generation_success=verdict.generation_success,
        generation_score=verdict.generation_score,
        passages=tuple(helpful),
        spared=tuple(sorted(sentence for passage in spared for sentence, _ in names.texts.get(passage, ()))),
        likely=_choose_likely_supports(helpful, names, supports, reject_probabilities),
        expansions=tuple(verdict.expansions),
        confidence=verdict.confidence,
        examined=_list_examinations(reject_probabilities),
        rounds=tuple(verdict.rounds),
    )


def _resolve_rating(verdict: Verdict, rating: Rating, names: VerdictNames) -> LoggedVerdict:
    """Make the logged verdict from a rating. Sentences that the rating says nothing about stay unknown.

    Raises:
        InvalidRequestError: a cited sentence or passage does not exist, or rating and reason have no meaning
            together.
    """
    try:
        meaning = find_meaning(rating, verdict.reason, has_citations=bool(verdict.cited))
    except ValueError as error:
        raise InvalidRequestError(f"{error}.") from error
    cited_passages = names.list_passages(verdict.cited_passages)
    sentences = names.list_shown(names.list_sentences(verdict.cited_sentences))
    supports = sentences if meaning.target == 1 else []
    helpful = cited_passages if meaning.target == 1 else []
    likely = _choose_likely_supports(helpful, names, supports, ())
    reject_probabilities: dict[int, float] = {}
    if meaning.target == 1 and not verdict.cited:
        likely = tuple(
            LikelySupport(sentence, probability)
            for sentence, probability in _choose_nearest_of_top_passages(meaning, names).items()
        )
    elif meaning.target == 0 and not verdict.cited:
        reject_probabilities = _choose_nearest_of_top_passages(meaning, names)
    elif meaning.target == 0:
        sentences_of_cited_passages = [
            sentence for passage in cited_passages for sentence, _ in names.texts.get(passage, ())
        ]
        reject_probabilities = dict.fromkeys(
            sorted({*sentences, *sentences_of_cited_passages}), meaning.citation_probability
        )
    return LoggedVerdict(
        supports=tuple(supports),
        rejects=tuple(reject_probabilities),
        partial=True,
        retrieval_success=meaning.retrieval_success,
        generation_success=meaning.generation_success,
        passages=tuple(helpful),
        likely=likely,
        confidence=verdict.confidence,
        examined=_list_examinations(reject_probabilities),
        rating=rating,
        reason=verdict.reason,
    )


def _list_examinations(reject_probabilities: Mapping[int, float]) -> tuple[float, ...]:
    """Return the probabilities that each rejected sentence was looked at; none if all were for certain."""
    probabilities = tuple(reject_probabilities.values())
    return probabilities if min(probabilities, default=1.0) < 1.0 else ()


def _choose_nearest_of_top_passages(meaning: RatingMeaning, names: VerdictNames) -> dict[int, float]:
    """Choose from each top passage the sentence nearest to the question.

    Returns:
        Sentence -> probability that the rating speaks of it, in id order.
    """
    probability_by_sentence: dict[int, float] = {}
    for rank, passage in enumerate(names.top_passages, start=1):
        nearest, probability = names.nearest.get(passage, ()), meaning.compute_reference_probability(rank)
        if nearest and probability > 0:
            probability_by_sentence[nearest[0]] = probability
    return dict(sorted(probability_by_sentence.items()))


def _collect_rejected(
    reject_probabilities: Mapping[int, float], supports: Sequence[int], names: VerdictNames
) -> dict[int, float]:
    """Return the rejected sentences as the shown passages have them, without those that are supported there."""
    probability_by_sentence: dict[int, float] = {}
    for sentence, probability in reject_probabilities.items():
        for same in names.find_in_shown_passage(sentence):
            if same not in supports:
                probability_by_sentence[same] = max(probability, probability_by_sentence.get(same, 0.0))
    return dict(sorted(probability_by_sentence.items()))


def _choose_likely_supports(
    helpful: Sequence[int], names: VerdictNames, supports: Collection[int], rejects: Collection[int]
) -> tuple[LikelySupport, ...]:
    """Return for each helpful passage without a supported sentence the nearest sentence that is not rejected."""
    chosen = []
    for passage in helpful:
        nearest = names.nearest.get(passage, ())
        not_rejected = [sentence for sentence in nearest if sentence not in rejects]
        if not_rejected and not any(sentence in supports for sentence in nearest):
            chosen.append(not_rejected[0])
    return tuple(LikelySupport(sentence, NEAREST_SENTENCE_PROBABILITY) for sentence in sorted(chosen))
