"""Spreads of collections' questions, by which a process tells whether a past question has the need of a new one."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
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
from engram.core.ranking.same_need import ComparedQuestions, JudgedPairs, QuestionSpread, Signals
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
SAMPLED_PASSAGES = 256
MOST_COLLECTIONS = 500
"""Collections whose spreads a process keeps: about 150 kB each."""
MOST_TERMS = 20_000
"""Terms of a collection whose rarity a process keeps."""
MOST_QUESTIONS = 5_000
"""Questions whose words a process keeps."""


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


class _TermRarity:
    """Idf of terms in one version of a collection, looked up as they are needed."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._idf: dict[str, float] = {}

    def weigh(self, reader: Reader, questions: Sequence[_ReadQuestion]) -> list[Mapping[str, float]]:
        """Return term -> idf for each question."""
        idf = self._idf if len(self._idf) <= MOST_TERMS else {}
        unknown = sorted({term for question in questions for term in question.terms} - idf.keys())
        if unknown:
            passages, counts = lexical_index.passage_counts(reader, self._collection, unknown)
            values = bm25.inverse_document_frequency(passages, [counts.get(term, 0) for term in unknown])
            # Another thread may read meanwhile: terms are only added, and the version has one idf for each.
            idf.update(zip(unknown, values.tolist(), strict=True))
            self._idf = idf
        return [{term: idf[term] for term in question.terms} for question in questions]


@dataclass(frozen=True, slots=True)
class _MeasuredPassages:
    """Measures of one version of a collection's passages."""

    spread: PassageSpread
    rarity: _TermRarity


@dataclass(frozen=True, slots=True)
class MeasuredQuestions:
    """Spread of one collection's questions in one version.

    Attributes:
        rows: question of the sample or near one -> its row in ``placed``.
    """

    spread: QuestionSpread
    rows: Mapping[int, int]
    placed: PlacedQuestions
    rarity: _TermRarity

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
    ) -> ComparedQuestions | None:
        """Compare past questions with this question; None if there are none, or no passages.

        Args:
            current: versions of the collection in the reader's snapshot; None if it is gone.
            vector: of the question, (d,), of length 1.
            past: several may be of one question.
        """
        questions = list({one.question_id: one for one in past}.values())
        measured = None if current is None or not questions else self.find(reader, collection, current)
        if measured is None:
            return None
        spread, units = measured.spread, measured.spread.units
        placed = measured.place(reader, collection, [one.question_id for one in questions])
        languages = tuple(collection.languages.items())
        own, *others = (self._read(text, languages) for text in (question, *(one.question for one in questions)))
        own_words, *words = measured.rarity.weigh(reader, [own, *others])
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
        return spread.compare([one.question_id for one in questions], pairs, vote_nearness, identical)

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
        words = [] if measured is None else measured.rarity.weigh(reader, read)
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
        judged = self._compare_sample(reader, collection, sample, units, passages.rarity)
        spread = same_need.measure_spread(units, judged)
        rows = {question: row for row, question in enumerate(sample.ids)}
        return MeasuredQuestions(spread, rows, spread.place(judged.vectors), passages.rarity)

    def _compare_sample(
        self,
        reader: Reader,
        collection: Collection,
        sample: QuestionSample,
        units: QuestionUnits,
        rarity: _TermRarity,
    ) -> JudgedPairs:
        """Compare each question of a sample with its neighbours."""
        languages = tuple(collection.languages.items())
        read = [self._read(text, languages) for text in sample.texts]
        words = rarity.weigh(reader, read)
        pairs = list(zip(sample.rows.tolist(), sample.neighbours.tolist(), strict=True))
        contrasts = [compare_marks(read[one].marks, read[other].marks) for one, other in pairs]
        along = sample.vectors.astype(np.float64).reshape(-1, len(units.centre)) @ units.centre
        signals = Signals(
            units.standardise(sample.similarity, along[sample.rows], along[sample.neighbours]),
            np.array([same_need.compare_words(words[one], words[other]) for one, other in pairs]),
            np.array(contrasts, dtype=np.bool_).reshape(-1, len(CONTRASTS)),
        )
        return JudgedPairs(sample.evidence, sample.rows, sample.neighbours, signals, sample.vectors)


def _measure_passages(reader: Reader, collection: Collection) -> _MeasuredPassages | None:
    vectors = question_samples.load_passage_sample(reader, collection.id, SAMPLED_PASSAGES)
    if not len(vectors):
        return None
    return _MeasuredPassages(question_units.measure_passages(vectors), _TermRarity(collection))


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
