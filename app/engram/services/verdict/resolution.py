"""Resolution of an incoming verdict to what the log keeps: see ``core.learning.logged_verdict``.

Its names mean sentences and passages of its collection, as its answer showed them.
"""

import re
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, groupby

from engram.context.errors import ConflictError, InvalidRequestError
from engram.core.learning.logged_verdict import NEAREST_SENTENCE_PROBABILITY, LikelySupport, LoggedVerdict
from engram.core.learning.ratings import RATED_PASSAGES, Rating, RatingMeaning, find_meaning
from engram.core.text.headings import find_headings
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.storage.corpus import passages
from engram.storage.corpus.passages import StoredSentence
from engram.storage.database import Reader
from engram.storage.question import episodes
from engram.storage.question.episodes import ShownTexts

WORD = re.compile(r"\w+")
MIN_OVERLAP = 20  # characters that a part of a sentence needs to name it


def resolve_verdict(reader: Reader, verdict: Verdict) -> LoggedVerdict:
    """Resolve a verdict to the form that the log keeps.

    What the verdict says about a left-out duplicate counts for the passage that stands for it. That passage was
    shown, and would count as rejected otherwise.

    Raises:
        InvalidRequestError: a named sentence or passage does not exist, or is both supported and rejected; or a
            rating and its reason have no meaning together.
        ConflictError: one has another text than the answer showed.
    """
    names = _Names.read(reader, verdict)
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
    return _resolve_names(verdict, _Names(sentences={one for one in named if one is not None}))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """Sentences and passages that the names in a verdict mean.

    Attributes:
        sentences: those named by id that exist.
        revised: those named by id whose text was revised since the answer.
        passages: external id -> passage.
        stand_in_by_passage: passage that the answer left out as a duplicate -> the shown one that stands for it.
        changed: passages whose text is another than the answer showed.
        top_passages: the first passages of a rated answer, best first.
        texts: passage -> its sentences in order, each with its words.
        twins: sentence of a left-out passage -> the passage that stands for it, and the same sentences there.
        nearest: passage that helped as a whole -> its sentences, the nearest to the question first and headings
            last; none where the question's vector is not comparable with theirs.
    """

    sentences: Collection[int]
    revised: Collection[int] = frozenset()
    passages: Mapping[str, int] = field(default_factory=dict)
    stand_in_by_passage: Mapping[int, int] = field(default_factory=dict)
    changed: Collection[int] = frozenset()
    top_passages: Sequence[int] = ()
    texts: Mapping[int, Sequence[tuple[int, str]]] = field(default_factory=dict)
    twins: Mapping[int, tuple[int, Sequence[int]]] = field(default_factory=dict)
    nearest: Mapping[int, Sequence[int]] = field(default_factory=dict)

    @classmethod
    def read(cls, reader: Reader, verdict: Verdict) -> "_Names":
        """Find the rows that the verdict names, and what its answer showed of them."""
        collection_id, named = verdict.scope.collection.id, verdict.named
        by_id = passages.sentences_by_id(reader, collection_id, {n.sentence_id for n in named if n.sentence_id})
        shown = episodes.load_shown_texts(reader, collection_id, verdict.query_id)
        revised: Collection[int] = frozenset()
        if by_id and shown.shown_at is not None:
            revised = passages.find_revised(reader, collection_id, by_id, shown.shown_at)
        external = {n.passage_id for n in named if n.passage_id is not None} | set(verdict.named_passages)
        versions = passages.versions(reader, collection_id, external)
        passage_ids = {name: version[0] for name, version in versions.items()}
        holders = {*passage_ids.values(), *(sentence.passage_id for sentence in by_id.values())}
        stand_ins = episodes.load_stand_ins(reader, collection_id, verdict.query_id)
        stand_ins = {duplicate: passage for duplicate, passage in stand_ins.items() if duplicate in holders}
        named_passages = {*passage_ids.values(), *stand_ins, *stand_ins.values()}
        top_passages = [] if verdict.rating is None else [*shown.by_row][:RATED_PASSAGES]
        changed = _find_changed(reader, collection_id, shown, {*named_passages, *top_passages})
        stored = passages.list_sentences(reader, collection_id, {*named_passages, *top_passages})
        sentences = {passage: list(own) for passage, own in groupby(stored, lambda sentence: sentence.passage_id)}
        texts = {key: [(one.id, _normalise_words(one.text)) for one in own] for key, own in sentences.items()}
        helped = [passage_ids[name] for name in verdict.named_passages if name in passage_ids]
        judged = {*(stand_ins.get(passage, passage) for passage in helped), *top_passages}
        return cls(
            sentences=by_id.keys(),
            revised=revised,
            passages=passage_ids,
            stand_in_by_passage=stand_ins,
            changed=changed,
            top_passages=top_passages,
            texts=texts,
            twins={
                sentence: (passage, _find_matching(text, texts.get(passage, ())))
                for duplicate, passage in stand_ins.items()
                for sentence, text in texts.get(duplicate, ())
            },
            nearest=_list_nearest_sentences(reader, verdict, judged, sentences),
        )

    def list_sentences(self, named: Sequence[NamedSentence]) -> list[int]:
        """Return the ids of the named sentences, in order.

        Raises:
            InvalidRequestError, ConflictError: as ``collect_examined``.
        """
        return list(self.collect_examined(named))

    def collect_examined(self, named: Sequence[NamedSentence]) -> dict[int, float]:
        """Return the named sentences in id order, each with the largest stated probability that it was read.

        Raises:
            InvalidRequestError: one of them does not exist.
            ConflictError: one has another text than the answer showed.
        """
        probabilities: dict[int, float] = {}
        for name in named:
            for sentence in self._find_sentences(name):
                probabilities[sentence] = max(name.examined, probabilities.get(sentence, 0.0))
        return dict(sorted(probabilities.items()))

    def _find_sentences(self, name: NamedSentence) -> Sequence[int]:
        if name.sentence_id is not None:
            if name.sentence_id not in self.sentences:
                raise InvalidRequestError(f"There is no sentence {name.sentence_id} in this collection.")
            if name.sentence_id in self.revised:
                raise _build_changed_error(f"Sentence {name.sentence_id}")
            return [name.sentence_id]
        passage = self.passages.get(name.passage_id or "")
        if passage is None:
            raise InvalidRequestError(f"There is no passage {name.passage_id!r} in this collection.")
        is_changed = passage in self.changed
        matching = _find_matching(name.text or "", self.texts.get(passage, ()), allows_parts=not is_changed)
        if not matching and is_changed:
            raise _build_changed_error(f"Passage {name.passage_id!r}")
        if not matching:
            raise InvalidRequestError(f"Passage {name.passage_id!r} has no sentence {name.text!r}.")
        return matching

    def list_passages(self, named: Sequence[str]) -> list[int]:
        """Return the ids of the named passages as they were shown, in order.

        Raises:
            InvalidRequestError: one of them does not exist.
            ConflictError: the text of one changed since it was shown.
        """
        unknown = sorted(set(named) - self.passages.keys())
        if unknown:
            raise InvalidRequestError(f"There is no passage {unknown[0]!r} in this collection.")
        ids = {name: self.passages[name] for name in named}
        represented = {name: self.stand_in_by_passage.get(passage, passage) for name, passage in ids.items()}
        for name, passage in sorted(represented.items()):
            if passage in self.changed or ids[name] in self.changed:
                raise _build_changed_error(f"Passage {name!r}")
        return sorted(set(represented.values()))

    def list_shown(self, sentences: Sequence[int]) -> list[int]:
        """Return the sentences as the shown passages have them, in id order."""
        return sorted({same for one in sentences for same in self.find_in_shown_passage(one)})

    def find_in_shown_passage(self, sentence: int) -> Sequence[int]:
        """Return the same sentence in the shown passage; itself where that passage does not have it."""
        _, same = self.twins.get(sentence, (0, ()))
        return same or (sentence,)


def _find_changed(
    reader: Reader, collection_id: int, shown: ShownTexts, passage_ids: Collection[int]
) -> frozenset[int]:
    """Find those of the passages whose text is another than the answer showed.

    A passage that was deleted, and written again under its id, is compared too.
    """
    if not passage_ids:
        return frozenset()
    stored = passages.load_by_id(reader, collection_id, passage_ids)
    digests = {
        passage: shown.by_row.get(passage) or shown.by_name.get(episodes.digest_text(one.external_id))
        for passage, one in stored.items()
    }
    return frozenset(
        passage
        for passage, digest in digests.items()
        if digest is not None and digest != episodes.digest_text(stored[passage].text)
    )


def _list_nearest_sentences(
    reader: Reader,
    verdict: Verdict,
    passage_ids: Collection[int],
    sentences: Mapping[int, Sequence[StoredSentence]],
) -> dict[int, Sequence[int]]:
    """List the sentences of each passage, the nearest to the question first and headings last.

    Args:
        sentences: of each passage, in reading order.
    """
    collection_id = verdict.scope.collection.id
    nearest = episodes.find_nearest_sentences(reader, collection_id, verdict.query_id, passage_ids)
    headings: set[int] = set()
    for passage, stored in passages.load_by_id(reader, collection_id, nearest).items():
        own = sentences.get(passage, ())
        headings.update(one.id for one in compress(own, find_headings(stored.title, [one.text for one in own])))
    return {passage: sorted(own, key=headings.__contains__) for passage, own in nearest.items()}


def _resolve_names(verdict: Verdict, names: _Names) -> LoggedVerdict:
    """Make the logged verdict from the names that were resolved.

    Raises:
        InvalidRequestError, ConflictError: as ``resolve_verdict``.
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
        on_session=verdict.on_session,
    )


def _collect_rejected(
    reject_probabilities: Mapping[int, float], supports: Sequence[int], names: _Names
) -> dict[int, float]:
    """Return the rejected sentences as the shown passages have them, without those that are supported there."""
    probability_by_sentence: dict[int, float] = {}
    for sentence, probability in reject_probabilities.items():
        for same in names.find_in_shown_passage(sentence):
            if same not in supports:
                probability_by_sentence[same] = max(probability, probability_by_sentence.get(same, 0.0))
    return dict(sorted(probability_by_sentence.items()))


def _choose_likely_supports(
    helpful: Sequence[int], names: _Names, supports: Collection[int], rejects: Collection[int]
) -> tuple[LikelySupport, ...]:
    """Return for each helpful passage without a supported sentence the nearest sentence that is not rejected."""
    chosen = []
    for passage in helpful:
        nearest = names.nearest.get(passage, ())
        not_rejected = [sentence for sentence in nearest if sentence not in rejects]
        if not_rejected and not any(sentence in supports for sentence in nearest):
            chosen.append(not_rejected[0])
    return tuple(LikelySupport(sentence, NEAREST_SENTENCE_PROBABILITY) for sentence in sorted(chosen))


def _resolve_rating(verdict: Verdict, rating: Rating, names: _Names) -> LoggedVerdict:
    """Make the logged verdict from a rating. Sentences that the rating says nothing about stay unknown.

    Raises:
        InvalidRequestError, ConflictError: as ``resolve_verdict``.
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


def _choose_nearest_of_top_passages(meaning: RatingMeaning, names: _Names) -> dict[int, float]:
    """Choose from each top passage whose text did not change the sentence nearest to the question.

    Returns:
        Sentence -> probability that the rating speaks of it, in id order.
    """
    probability_by_sentence: dict[int, float] = {}
    for rank, passage in enumerate(names.top_passages, start=1):
        nearest, probability = names.nearest.get(passage, ()), meaning.compute_reference_probability(rank)
        if nearest and probability > 0 and passage not in names.changed:
            probability_by_sentence[nearest[0]] = probability
    return dict(sorted(probability_by_sentence.items()))


def _list_examinations(reject_probabilities: Mapping[int, float]) -> tuple[float, ...]:
    """Return the probabilities that each rejected sentence was looked at; none if all were for certain."""
    probabilities = tuple(reject_probabilities.values())
    return probabilities if min(probabilities, default=1.0) < 1.0 else ()


def _build_changed_error(name: str) -> ConflictError:
    return ConflictError(f"{name} has another text now than this answer showed. Ask again, and judge that.")


def _find_matching(text: str, sentences: Sequence[tuple[int, str]], *, allows_parts: bool = True) -> list[int]:
    """Return the sentences whose words are those of ``text``.

    Without any, return those that contain the text or that it contains, for a judge that splits differently. The
    contained one must have ``MIN_OVERLAP`` characters.

    Args:
        allows_parts: whether sentences with other words beside count.
    """
    plain_text = _normalise_words(text)
    exact = [sentence for sentence, plain in sentences if plain == plain_text]
    if exact or not plain_text or not allows_parts:
        return exact
    return [
        sentence
        for sentence, plain in sentences
        if (len(plain_text) >= MIN_OVERLAP and f" {plain_text} " in f" {plain} ")
        or (len(plain) >= MIN_OVERLAP and f" {plain} " in f" {plain_text} ")
    ]


def _normalise_words(text: str) -> str:
    """Return the words of a text in lower case, as Unicode composes them, without punctuation."""
    return " ".join(WORD.findall(unicodedata.normalize("NFC", text).casefold()))
