"""Spreads of collections' questions, by which a process tells whether a past question has the need of a new one."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache, partial
from threading import Lock
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from engram.context import tenancy
from engram.core.filter.states import question_hash
from engram.core.ranking import bm25, question_units, same_need
from engram.core.ranking.neighbour_vote import NEIGHBOURS
from engram.core.ranking.question_contrasts import CONTRASTS, QuestionMarks, compare_marks
from engram.core.ranking.question_units import PassageSpread, QuestionUnits
from engram.core.ranking.same_need import ComparedQuestions, NearPairs, QuestionSpread, Signals
from engram.core.ranking.weight_beliefs import sigmoid
from engram.core.ranking.wording_scatter import PlacedQuestions
from engram.providers.language import Language, detect_language, question_terms, read_marks
from engram.storage.corpus import lexical_index
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.current_vectors import Current
from engram.storage.database import Reader
from engram.storage.learning import question_samples
from engram.storage.learning.question_samples import QuestionSample

SAMPLED_QUESTIONS = 256
SAMPLED_ASKED = 128
"""Questions without verdicts that show how often needs are asked for again."""
SAMPLED_PASSAGES = 256
MOST_COLLECTIONS = 500
"""Collections whose spreads a process keeps: about 150 kB each."""
MOST_TERMS = 20_000
"""Terms of a collection whose rarity a process keeps."""
MOST_PASSAGES = 5_000
"""Passages of a collection whose terms a process keeps, until others are needed: less than 1 kB each."""
MOST_QUESTIONS = 5_000
"""Questions whose words a process keeps."""
SMALLEST_IDF = 1e-9


Measured = TypeVar("Measured")


class PastQuestion(Protocol):
    """A judged question near to the present one."""

    @property
    def question_id(self) -> int: ...
    @property
    def question(self) -> str: ...
    @property
    def similarity(self) -> float: ...


@dataclass(frozen=True, slots=True)
class _ReadQuestion:
    """A question's text, as it is compared.

    Attributes:
        key: the same for texts that are equal but for case, white space and marks at their ends.
        terms: each once.
        language: ISO 639 code; None if it cannot be told.
    """

    key: bytes
    terms: Sequence[str]
    language: str | None
    marks: QuestionMarks

    def is_foreign_to(self, other: "_ReadQuestion") -> bool:
        """Whether the two are in different languages."""
        return None not in (self.language, other.language) and self.language != other.language


class KnownTerms:
    """Terms of one version of a collection, looked up as they are needed: their idf, and which passages have them.

    Other threads may read meanwhile: entries are only added, and a version has one value for each.
    """

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._terms: tuple[dict[str, float], dict[str, int]] = {}, {}
        self._passages: dict[int, NDArray[np.int64]] = {}

    def weigh(self, reader: Reader, questions: Sequence[_ReadQuestion]) -> list[Mapping[str, float]]:
        """Return term -> idf for each question."""
        idf, _ = self._look_up(reader, {term for question in questions for term in question.terms})
        return [{term: idf[term] for term in question.terms} for question in questions]

    def measure_shares(
        self, reader: Reader, questions: Sequence[tuple[Mapping[str, float], AbstractSet[int]]]
    ) -> list[dict[int, float]]:
        """For each question, passage -> share of its words that the passage has, each weighted by its idf.

        Args:
            questions: term -> idf, as ``weigh`` returns them, and passages.
        """
        terms = self._read_passages(reader, set().union(*(passages for _, passages in questions)))
        _, ids = self._look_up(reader, set().union(*(words for words, _ in questions)))
        shares = []
        for words, passages in questions:
            known = sorted((ids[term], idf) for term, idf in words.items() if term in ids)
            term_ids = np.array([term for term, _ in known], dtype=np.int64)
            weights = np.array([idf for _, idf in known]) / max(sum(words.values()), SMALLEST_IDF)
            shares.append(
                {passage: float(weights @ _find_members(term_ids, terms[passage])) for passage in sorted(passages)}
            )
        return shares

    def _look_up(self, reader: Reader, terms: AbstractSet[str]) -> tuple[Mapping[str, float], Mapping[str, int]]:
        """Return term -> idf, with at least these terms, and term -> id, of those that a passage has."""
        idf, ids = self._terms
        if terms - idf.keys():
            if len(idf) > MOST_TERMS:
                idf, ids = {}, {}
            unknown = sorted(terms - idf.keys())
            passages, held = lexical_index.find_terms(reader, self._collection, unknown)
            counts = [held[term].passages if term in held else 0 for term in unknown]
            ids.update((term, one.id) for term, one in held.items())
            idf.update(zip(unknown, bm25.inverse_document_frequency(passages, counts).tolist(), strict=True))
            self._terms = idf, ids
        return idf, ids

    def _read_passages(self, reader: Reader, passages: AbstractSet[int]) -> Mapping[int, NDArray[np.int64]]:
        """Passage -> ids of its terms, in order, (n,)."""
        held = self._passages if len(self._passages) <= MOST_PASSAGES else {}
        missing = sorted(passages - held.keys())
        if missing:
            holders, terms = lexical_index.term_rows(reader, self._collection.id, missing)
            order = np.lexsort((terms, holders))
            bounds = np.searchsorted(holders[order], missing)
            held.update(zip(missing, np.split(terms[order], bounds[1:]), strict=True))
            self._passages = held
        return held


def _find_members(ids: NDArray[np.int64], held: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each of the ids, (n,), is among those held, which are in order."""
    if not len(held):
        return np.zeros(len(ids), dtype=np.bool_)
    return np.asarray(held.take(np.searchsorted(held, ids), mode="clip") == ids)


@dataclass(frozen=True, slots=True)
class _MeasuredPassages:
    """Measures of one version of a collection's passages."""

    spread: PassageSpread
    terms: KnownTerms


@dataclass(frozen=True, slots=True)
class MeasuredQuestions:
    """Spread of one collection's questions in one version.

    Attributes:
        rows: question of the sample or near one -> its row in ``placed``.
    """

    spread: QuestionSpread
    rows: Mapping[int, int]
    placed: PlacedQuestions
    terms: KnownTerms

    def place(self, reader: Reader, collection: Collection, questions: Sequence[int]) -> PlacedQuestions:
        """Place judged questions; the vectors of those that are not held are read."""
        missing = [question for question in questions if question not in self.rows]
        if not missing:
            return self.placed.select([self.rows[question] for question in questions])
        read = self.spread.place(question_samples.load_vectors(reader, collection.id, missing))
        new = {question: len(self.rows) + at for at, question in enumerate(missing)}
        return self.placed.join(read).select(
            [self.rows[one] if one in self.rows else new[one] for one in questions]
        )


@dataclass(frozen=True, slots=True)
class ComparableQuestions:
    """Questions that are compared with each other, judged or not.

    Attributes:
        spread: of the collection's questions; None if it has no passages: then only equal texts have the same need.
        words: term -> idf, of each question.
        vectors: of each question, of length 1, (n, d).
    """

    spread: QuestionSpread | None
    read: Sequence[_ReadQuestion]
    words: Sequence[Mapping[str, float]]
    vectors: NDArray[np.float64]

    def estimate_same_need(self, one: int, others: NDArray[np.intp]) -> NDArray[np.float64]:
        """Probability that a question has the need of each of the others by itself, (k,)."""
        places = others.tolist()
        own = self.read[one]
        identical = np.array([self.read[other].key == own.key for other in places], dtype=np.bool_)
        if self.spread is None:
            return identical.astype(np.float64)
        along = self.vectors @ self.spread.units.centre
        signals = Signals(
            self.spread.units.standardise(self.vectors[others] @ self.vectors[one], along[[one]], along[others]),
            np.array(
                [
                    np.nan
                    if own.is_foreign_to(self.read[other])
                    else same_need.compare_words(self.words[one], self.words[other])
                    for other in places
                ]
            ),
            np.array([compare_marks(own.marks, self.read[other].marks) for other in places]),
        )
        log_odds = same_need.compute_log_odds(signals, self.spread.other_pairs, self.spread.shares)
        return np.where(identical, 1.0, sigmoid(log_odds))


def _key(collection: Collection) -> Hashable:
    """Return what is measured: a collection, or what some of its readers see of it."""
    return collection.id, tenancy.get_visibility().readers


class _LatestMeasures(Generic[Measured]):
    """Measures of the latest version of each collection. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: OrderedDict[Hashable, tuple[Hashable, Measured]] = OrderedDict()

    def find(self, collection: Hashable, version: Hashable, measure: Callable[[], Measured]) -> Measured:
        """Return what was measured of this version, measured now if another one or none is held."""
        with self._lock:
            held = self._held.get(collection)
            if held is not None and held[0] == version:
                self._held.move_to_end(collection)
                return held[1]
        measured = measure()
        with self._lock:
            self._held[collection] = (version, measured)
            self._held.move_to_end(collection)
            if len(self._held) > MOST_COLLECTIONS:
                self._held.popitem(last=False)
        return measured


class QuestionSpreads:
    """Spreads of collections' questions, each measured on the snapshot that first asks for its version.

    Processes that serve the same version come to the same spread. Safe to share between threads.
    """

    def __init__(self, load_language: Callable[[], Language]) -> None:
        """``load_language``: of what finds names and dates in questions, called once there are some to compare."""
        self._read = lru_cache(maxsize=MOST_QUESTIONS)(partial(_read, load_language))
        self._passages: _LatestMeasures[_MeasuredPassages | None] = _LatestMeasures()
        self._questions: _LatestMeasures[MeasuredQuestions | None] = _LatestMeasures()

    def compare(
        self,
        reader: Reader,
        collection: Collection,
        current: Current | None,
        question: str,
        vector: NDArray[np.float32],
        past: Sequence[PastQuestion],
        evidence: Mapping[int, AbstractSet[int]],
    ) -> ComparedQuestions | None:
        """Compare past questions with this question; None if there are none, or no passages.

        Args:
            current: versions of the collection in the reader's snapshot; None if it is gone.
            vector: of the question, (d,), of length 1.
            past: several may be of one question.
            evidence: past question -> passages that may get its vote.
        """
        questions = list({one.question_id: one for one in past}.values())
        measured = None if current is None or not questions else self.find(reader, collection, current)
        if measured is None:
            return None
        spread, units = measured.spread, measured.spread.units
        placed = measured.place(reader, collection, [one.question_id for one in questions])
        languages = tuple(collection.languages.items())
        own, *others = (self._read(text, languages) for text in (question, *(one.question for one in questions)))
        own_words, *words = measured.terms.weigh(reader, [own, *others])
        own_place = spread.place(vector[None, :])
        foreign = np.array([own.is_foreign_to(other) for other in others])
        cosines = np.array([one.similarity for one in questions])
        nearness = units.standardise(cosines, own_place.along, placed.along)
        vote_nearness = spread.scatter.standardise(units, cosines, own_place, placed)
        shared = np.array([same_need.compare_words(own_words, other) for other in words])
        adapted = units
        if foreign.any():
            adapted = units.fit_to_other_languages(
                vector.astype(np.float64), self._load_foreign(reader, collection, own)
            )
            nearness = np.where(foreign, adapted.standardise(cosines, own_place.along, placed.along), nearness)
            vote_nearness = np.where(
                foreign, spread.scatter.standardise(adapted, cosines, own_place, placed), vote_nearness
            )
            shared = np.where(foreign, np.nan, shared)
        pairs = Signals(
            nearness,
            shared,
            np.array([compare_marks(own.marks, other.marks) for other in others]),
            foreign & (adapted is not units),
        )
        identical = np.array([other.key == own.key for other in others])
        ids = [one.question_id for one in questions]
        readable = {id_ for id_, is_foreign in zip(ids, foreign.tolist(), strict=True) if not is_foreign}
        passages = set[int]().union(*evidence.values())
        # To a question in another language than all who support a passage, its words say nothing.
        apart = passages.difference(*(evidence[one] for one in readable & evidence.keys()))
        (word_shares,) = measured.terms.measure_shares(reader, [(own_words, passages)])
        word_shares |= dict.fromkeys(apart, np.nan)
        return spread.compare(ids, pairs, vote_nearness, identical, word_shares)

    def find(self, reader: Reader, collection: Collection, current: Current) -> MeasuredQuestions | None:
        """Return the spread of this version's questions; None if the collection has no passages."""
        return self._questions.find(
            _key(collection), current, lambda: self._measure_questions(reader, collection, current)
        )

    def read_questions(
        self,
        reader: Reader,
        collection: Collection,
        current: Current | None,
        texts: Sequence[str],
        vectors: NDArray[np.float32],
    ) -> ComparableQuestions:
        """Read questions so that each can be compared with each, by their vectors, (n, d)."""
        measured = None if current is None else self.find(reader, collection, current)
        languages = tuple(collection.languages.items())
        read = [self._read(text, languages) for text in texts]
        words = [] if measured is None else measured.terms.weigh(reader, read)
        return ComparableQuestions(
            None if measured is None else measured.spread, read, words, vectors.astype(np.float64)
        )

    def _load_foreign(self, reader: Reader, collection: Collection, own: _ReadQuestion) -> NDArray[np.float32]:
        """Load vectors of judged questions in other languages than this one, (n, d)."""
        _, texts, vectors = question_samples.load_question_vectors(reader, collection.id, SAMPLED_QUESTIONS)
        languages = tuple(collection.languages.items())
        rows = [row for row, text in enumerate(texts) if own.is_foreign_to(self._read(text, languages))]
        return vectors[rows]

    def _measure_questions(
        self, reader: Reader, collection: Collection, current: Current
    ) -> MeasuredQuestions | None:
        passages = self._passages.find(
            _key(collection), (current.space, current.base_keys), lambda: _measure_passages(reader, collection)
        )
        if passages is None:
            return None
        sample = question_samples.load_question_sample(reader, collection, SAMPLED_QUESTIONS, NEIGHBOURS)
        units = question_units.measure_units(passages.spread, sample.vectors[: sample.size])
        judged = self._compare_sample(reader, collection, sample, units, passages.terms)
        latest = question_samples.load_asked_sample(reader, collection, SAMPLED_ASKED, NEIGHBOURS)
        asked = self._compare_sample(reader, collection, latest, units, passages.terms)
        spread = same_need.measure_spread(units, judged, asked)
        rows = {question: row for row, question in enumerate(sample.ids)}
        return MeasuredQuestions(spread, rows, spread.place(judged.vectors), passages.terms)

    def _compare_sample(
        self,
        reader: Reader,
        collection: Collection,
        sample: QuestionSample,
        units: QuestionUnits,
        terms: KnownTerms,
    ) -> NearPairs:
        """Compare each question of a sample with its neighbours, but for those that are judged already."""
        languages = tuple(collection.languages.items())
        read = [self._read(text, languages) for text in sample.texts]
        words = terms.weigh(reader, read)
        pairs = list(zip(sample.rows.tolist(), sample.neighbours.tolist(), strict=True))
        judged_alike = {one for one, other in pairs if read[one].key == read[other].key}
        apart = [at for at, (one, _) in enumerate(pairs) if one not in judged_alike]
        pairs, rows, neighbours = [pairs[at] for at in apart], sample.rows[apart], sample.neighbours[apart]
        contrasts = [compare_marks(read[one].marks, read[other].marks) for one, other in pairs]
        along = sample.vectors.astype(np.float64).reshape(-1, len(units.centre)) @ units.centre
        signals = Signals(
            units.standardise(sample.similarity[apart], along[rows], along[neighbours]),
            np.array([same_need.compare_words(words[one], words[other]) for one, other in pairs]),
            np.array(contrasts, dtype=np.bool_).reshape(-1, len(CONTRASTS)),
        )
        passages: dict[int, set[int]] = {}
        for one, other in pairs:
            passages.setdefault(one, set()).update(sample.evidence[other])
        shares = terms.measure_shares(reader, [(words[row], near) for row, near in passages.items()])
        word_shares = dict(zip(passages, shares, strict=True))
        return NearPairs(sample.evidence, rows, neighbours, signals, sample.vectors, word_shares)


def _measure_passages(reader: Reader, collection: Collection) -> _MeasuredPassages | None:
    vectors = question_samples.load_passage_sample(reader, collection.id, SAMPLED_PASSAGES)
    if not len(vectors):
        return None
    return _MeasuredPassages(question_units.measure_passages(vectors), KnownTerms(collection))


def _read(
    load_language: Callable[[], Language], text: str, languages: tuple[tuple[str, int], ...]
) -> _ReadQuestion:
    own = detect_language(text)
    usual = max(languages, key=lambda pair: pair[1], default=(None, 0))[0]
    return _ReadQuestion(
        question_hash(text),
        sorted(question_terms(text, dict(languages))),
        own,
        read_marks(text, load_language().analyse_question(text, own or usual)),
    )
