"""A judge's verdict as it comes in, and what of it the log keeps: see ``core.filter.logged_verdict``."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from engram.context.errors import InvalidRequestError
from engram.core.filter.logged_verdict import (
    NEAREST_SENTENCE_PROBABILITY,
    Expansion,
    JudgedRound,
    LikelySupport,
    LoggedVerdict,
)
from engram.core.filter.ratings import RATED_PASSAGES, Rating, RatingMeaning, find_meaning
from engram.services.auth.scope import Scope
from engram.storage.corpus import passages
from engram.storage.database import Reader
from engram.storage.retrieval import episodes

WORD = re.compile(r"\w+")
MIN_OVERLAP = 20  # characters that a part of a sentence needs to name it


@dataclass(frozen=True, slots=True)
class NamedSentence:
    """A sentence named by id, or by its passage and its text.

    ``examined``: of a rejected one, with what probability the judge looked at it, in [0.01, 1].
    """

    sentence_id: int | None = None
    passage_id: str | None = None
    text: str | None = None
    examined: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Verdict of a judge on one episode.

    Attributes:
        supporting: sentences that helped, retrieved or not.
        rejected: sentences that did not.
        missed: evidence that retrieval did not return.
        partial: leave activated sentences that are not named alone, instead of counting them as rejected.
        retrieval_success, generation_success: whether the evidence was found, whether the answer was right.
        generation_score: how good the answer was, in [0, 1], where the judge leaves the decision to Engram.
        supporting_passages: passages that helped as a whole, by external id; their keys learn from it. Of each that
            has no supporting sentence, the sentence nearest to the question counts as a likely support; their other
            sentences that are not named are left alone.
        expansions: query expansions, for key evolution.
        judge: who it says judged; None: whose key it came with.
        confidence: in [0.01, 1]; divides the observation noise.
        rounds: of the session that is judged, as the log is to have them.
        rating: thumb under the answer, see ``core.filter.ratings``; stands for all of the above but ``judge`` and
            ``confidence``.
        cited: sentences that a rated answer used; one without sentence id and text stands for its whole passage.
        reason: of a rating; one of ``REASONS``, or free text.
    """

    query_id: UUID
    scope: Scope
    supporting: Sequence[NamedSentence] = ()
    rejected: Sequence[NamedSentence] = ()
    missed: Sequence[NamedSentence] = ()
    partial: bool = False
    retrieval_success: bool | None = None
    generation_success: bool | None = None
    generation_score: float | None = None
    supporting_passages: Sequence[str] = ()
    expansions: Sequence[Expansion] = ()
    judge: str | None = None
    confidence: float = 1.0
    rounds: Sequence[JudgedRound] = ()
    rating: Rating | None = None
    cited: Sequence[NamedSentence] = ()
    reason: str | None = None

    @property
    def vouches(self) -> bool:
        """Whether it says that retrieval or generation succeeded, which lets passage keys learn without a look."""
        return bool(self.retrieval_success or self.generation_success or self.generation_score is not None)

    @property
    def named(self) -> list[NamedSentence]:
        """All sentences it names, for and against."""
        return [*self.supporting, *self.rejected, *self.missed, *self.cited_sentences]

    @property
    def named_passages(self) -> list[str]:
        """External ids of all passages it names as a whole."""
        return [*self.supporting_passages, *self.cited_passages]

    @property
    def cited_sentences(self) -> list[NamedSentence]:
        """The cited sentences."""
        return [one for one in self.cited if one.sentence_id is not None or one.text is not None]

    @property
    def cited_passages(self) -> list[str]:
        """External ids of the passages that are cited as a whole."""
        return [one.passage_id for one in self.cited if one.passage_id is not None and one.text is None]


@dataclass(frozen=True, slots=True)
class _ResolvedNames:
    """Sentences and passages that a verdict's names resolve to.

    Attributes:
        sentences: those named by id that exist.
        passages: external id -> passage.
        texts: passage -> its sentences in order, each with its words.
        standing: passage that the answer left out as a duplicate -> the one that stood for it.
        twins: sentence of such a passage -> the one that stood for it, and its sentences that are the same.
        nearest: passage that helped as a whole -> its sentences, the nearest to the question first; none where the
            question's vector is not comparable with theirs.
        first: the first passages of a rated answer, best first.
    """

    sentences: Collection[int]
    passages: Mapping[str, int]
    texts: Mapping[int, Sequence[tuple[int, str]]]
    standing: Mapping[int, int] = field(default_factory=dict)
    twins: Mapping[int, tuple[int, Sequence[int]]] = field(default_factory=dict)
    nearest: Mapping[int, Sequence[int]] = field(default_factory=dict)
    first: Sequence[int] = ()


def resolve_verdict(reader: Reader, verdict: Verdict) -> LoggedVerdict:
    """The verdict as the log keeps it.

    What it says of a duplicate that the answer left out is said of the passage that stood for it: that one was
    shown, and would else count as rejected.

    Raises:
        InvalidRequestError: a named sentence or passage does not exist, or is both supported and rejected; or a
            rating and its reason have no meaning together.
    """
    names = _look_up(reader, verdict)
    if verdict.rating is not None:
        return _resolve_rating(verdict, verdict.rating, names)
    return _resolve_names(verdict, names)


def resolve_ids(verdict: Verdict) -> LoggedVerdict | None:
    """The verdict as the log keeps it if its sentences exist.

    None where more than sentence ids is named, or one id is both for and against.
    """
    supports = {name.sentence_id for name in (*verdict.supporting, *verdict.missed)}
    rejects = {name.sentence_id for name in verdict.rejected}
    named = supports | rejects
    if verdict.rating is not None or verdict.supporting_passages or None in named or supports & rejects:
        return None
    return _resolve_names(verdict, _ResolvedNames({sentence for sentence in named if sentence is not None}, {}, {}))


def _look_up(reader: Reader, verdict: Verdict) -> _ResolvedNames:
    """Resolve the verdict's names to existing rows."""
    collection_id, named = verdict.scope.collection.id, verdict.named
    by_id = passages.sentences_by_id(reader, collection_id, {n.sentence_id for n in named if n.sentence_id})
    external = {n.passage_id for n in named if n.passage_id is not None} | set(verdict.named_passages)
    versions = passages.versions(reader, collection_id, external)
    passage_ids = {name: version[0] for name, version in versions.items()}
    named_passages = {*passage_ids.values(), *(sentence.passage_id for sentence in by_id.values())}
    standing = {
        duplicate: passage
        for duplicate, passage in episodes.load_stand_ins(reader, collection_id, verdict.query_id).items()
        if duplicate in named_passages
    }
    texts: dict[int, list[tuple[int, str]]] = {}
    for sentence in passages.list_sentences(
        reader, collection_id, {*passage_ids.values(), *standing, *standing.values()}
    ):
        texts.setdefault(sentence.passage_id, []).append((sentence.id, _normalise_words(sentence.text)))
    twins = {
        sentence: (passage, _find_matching(text, texts.get(passage, ())))
        for duplicate, passage in standing.items()
        for sentence, text in texts.get(duplicate, ())
    }
    helpful = {
        standing.get(passage_ids[name], passage_ids[name]) for name in verdict.named_passages if name in passage_ids
    }
    first: Sequence[int] = ()
    if verdict.rating is not None:
        answered = episodes.load_answered(reader, collection_id, [verdict.query_id])
        first = [passage for answer in answered.values() for passage in answer.shown[:RATED_PASSAGES]]
    nearest = episodes.find_nearest_sentences(reader, collection_id, verdict.query_id, {*helpful, *first})
    return _ResolvedNames(by_id.keys(), passage_ids, texts, standing, twins, nearest, first)


def _resolve_names(verdict: Verdict, names: _ResolvedNames) -> LoggedVerdict:
    """The verdict by its resolved names.

    Raises:
        InvalidRequestError: a named sentence or passage does not exist, or is both supported and rejected.
    """
    helpful = _passage_ids(verdict.supporting_passages, names)
    missed = _sentence_ids(verdict.missed, names)
    supports = sorted({*_sentence_ids(verdict.supporting, names), *missed})
    rejects = _collect_examined(verdict.rejected, names)
    both = sorted(set(supports) & rejects.keys())
    if both:
        raise InvalidRequestError(f"Sentences {both} are both supported and rejected.")
    spared = {*helpful, *(names.twins[one][0] for one in supports if one in names.twins)}
    supports = _find_shown_sentences(supports, names)
    rejects = _collect_rejected(rejects, supports, names)
    missed = [one for one in missed if one in supports]
    return LoggedVerdict(
        supports=tuple(supports),
        rejects=tuple(rejects),
        missed=tuple(missed),
        partial=verdict.partial,
        retrieval_success=verdict.retrieval_success,
        generation_success=verdict.generation_success,
        generation_score=verdict.generation_score,
        passages=tuple(helpful),
        spared=tuple(sorted(sentence for passage in spared for sentence, _ in names.texts.get(passage, ()))),
        likely=_choose_likely_supports(helpful, names, supports, rejects),
        expansions=tuple(verdict.expansions),
        confidence=verdict.confidence,
        examined=tuple(rejects.values()) if min(rejects.values(), default=1.0) < 1.0 else (),
        rounds=tuple(verdict.rounds),
    )


def _resolve_rating(verdict: Verdict, rating: Rating, names: _ResolvedNames) -> LoggedVerdict:
    """The rating as a verdict of the log. Whatever it does not name stays unknown.

    Raises:
        InvalidRequestError: a cited sentence or passage does not exist, or rating and reason have no meaning
            together.
    """
    try:
        meaning = find_meaning(rating, verdict.reason, has_citations=bool(verdict.cited))
    except ValueError as error:
        raise InvalidRequestError(f"{error}.") from error
    cited_passages = _passage_ids(verdict.cited_passages, names)
    sentences = _find_shown_sentences(_sentence_ids(verdict.cited_sentences, names), names)
    supports = sentences if meaning.target == 1 else []
    helpful = cited_passages if meaning.target == 1 else []
    likely = _choose_likely_supports(helpful, names, supports, ())
    rejects: dict[int, float] = {}
    if meaning.target == 1 and not verdict.cited:
        likely = tuple(
            LikelySupport(one, probability) for one, probability in _choose_first_sentences(meaning, names).items()
        )
    elif meaning.target == 0 and not verdict.cited:
        rejects = _choose_first_sentences(meaning, names)
    elif meaning.target == 0:
        cited = [sentence for passage in cited_passages for sentence, _ in names.texts.get(passage, ())]
        rejects = dict.fromkeys(sorted({*sentences, *cited}), meaning.cited)
    return LoggedVerdict(
        supports=tuple(supports),
        rejects=tuple(rejects),
        partial=True,
        retrieval_success=meaning.retrieval_success,
        generation_success=meaning.generation_success,
        passages=tuple(helpful),
        likely=likely,
        confidence=verdict.confidence,
        examined=tuple(rejects.values()) if min(rejects.values(), default=1.0) < 1.0 else (),
        rating=rating,
        reason=verdict.reason,
    )


def _choose_first_sentences(meaning: RatingMeaning, names: _ResolvedNames) -> dict[int, float]:
    """Sentence that stands for a first passage -> probability that the rating speaks of it, in id order."""
    chosen: dict[int, float] = {}
    for rank, passage in enumerate(names.first, start=1):
        nearest, probability = names.nearest.get(passage, ()), meaning.compute_examination(rank)
        if nearest and probability > 0:
            chosen[nearest[0]] = probability
    return dict(sorted(chosen.items()))


def _passage_ids(named: Sequence[str], names: _ResolvedNames) -> list[int]:
    """Return the ids of the named passages as they were shown, in order.

    Raises:
        InvalidRequestError: one of them does not exist.
    """
    unknown = sorted(set(named) - names.passages.keys())
    if unknown:
        raise InvalidRequestError(f"There is no passage {unknown[0]!r} in this collection.")
    ids = {names.passages[name] for name in named}
    return sorted({names.standing.get(passage, passage) for passage in ids})


def _find_shown_sentences(sentences: Sequence[int], names: _ResolvedNames) -> list[int]:
    """Return the sentences as the shown passages have them, in id order."""
    return sorted({same for one in sentences for same in _find_in_shown_passage(one, names)})


def _find_in_shown_passage(sentence: int, names: _ResolvedNames) -> Sequence[int]:
    """Return the same sentence in the shown passage; itself where that passage does not have it."""
    _, same = names.twins.get(sentence, (0, ()))
    return same or (sentence,)


def _collect_rejected(
    rejects: Mapping[int, float], supports: Sequence[int], names: _ResolvedNames
) -> dict[int, float]:
    """The rejected sentences as the passages that were shown have them, without those that are supported there."""
    shown: dict[int, float] = {}
    for sentence, examined in rejects.items():
        for same in _find_in_shown_passage(sentence, names):
            if same not in supports:
                shown[same] = max(examined, shown.get(same, 0.0))
    return dict(sorted(shown.items()))


def _choose_likely_supports(
    helpful: Sequence[int], names: _ResolvedNames, supports: Collection[int], rejects: Collection[int]
) -> tuple[LikelySupport, ...]:
    """Return for each helpful passage without a supported sentence the nearest sentence that is not rejected."""
    chosen = []
    for passage in helpful:
        nearest = names.nearest.get(passage, ())
        open_to_it = [sentence for sentence in nearest if sentence not in rejects]
        if open_to_it and not any(sentence in supports for sentence in nearest):
            chosen.append(open_to_it[0])
    return tuple(LikelySupport(sentence, NEAREST_SENTENCE_PROBABILITY) for sentence in sorted(chosen))


def _sentence_ids(named: Sequence[NamedSentence], names: _ResolvedNames) -> list[int]:
    """The named sentences, in order.

    Raises:
        InvalidRequestError: one of them does not exist.
    """
    return list(_collect_examined(named, names))


def _collect_examined(named: Sequence[NamedSentence], names: _ResolvedNames) -> dict[int, float]:
    """The named sentences in order, each with what probability it was looked at: the largest that is said."""
    ids: dict[int, float] = {}
    for one in named:
        if one.sentence_id is not None:
            if one.sentence_id not in names.sentences:
                raise InvalidRequestError(f"There is no sentence {one.sentence_id} in this collection.")
            ids[one.sentence_id] = max(one.examined, ids.get(one.sentence_id, 0.0))
            continue
        passage = names.passages.get(one.passage_id or "")
        if passage is None:
            raise InvalidRequestError(f"There is no passage {one.passage_id!r} in this collection.")
        matching = _find_matching(one.text or "", names.texts.get(passage, ()))
        if not matching:
            raise InvalidRequestError(f"Passage {one.passage_id!r} has no sentence {one.text!r}.")
        ids |= {sentence: max(one.examined, ids.get(sentence, 0.0)) for sentence in matching}
    return dict(sorted(ids.items()))


def _find_matching(text: str, sentences: Sequence[tuple[int, str]]) -> list[int]:
    """Sentences, given in plain text, that are ``text``; else, for a judge that splits differently, those that
    hold it or that it holds whole, if what is held is long enough to tell.
    """
    plain_text = _normalise_words(text)
    exact = [sentence for sentence, plain in sentences if plain == plain_text]
    if exact or not plain_text:
        return exact
    return [
        sentence
        for sentence, plain in sentences
        if (len(plain_text) >= MIN_OVERLAP and f" {plain_text} " in f" {plain} ")
        or (len(plain) >= MIN_OVERLAP and f" {plain} " in f" {plain_text} ")
    ]


def _normalise_words(text: str) -> str:
    """The words of a text; a missing full stop makes no other sentence."""
    return " ".join(WORD.findall(text.casefold()))
