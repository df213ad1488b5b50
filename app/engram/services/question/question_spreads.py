"""Spreads of collections' questions, by which a process tells whether a past question has the need of a new one."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import log1p
from threading import Lock
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from engram.context import tenancy
from engram.core.learning.states import question_hash
from engram.core.ranking import bm25, question_units, same_need
from engram.core.ranking.neighbour_vote import NEIGHBOURS
from engram.core.ranking.question_pairs import ReadQuestion, Signals
from engram.core.ranking.question_units import Floats, QuestionUnits
from engram.core.ranking.same_need import ComparedQuestions, NearPairs, QuestionSpread
from engram.core.ranking.wording_scatter import PlacedQuestions
from engram.providers.language import Language, detect_language, question_terms, read_marks
from engram.storage.corpus import lexical_index
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.current_vectors import RENEWED_SHARE, Current
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


class PassageTerms:
    """Terms of one version of a collection's passages, looked up as they are needed: their idf, and who has them.

    Other threads may read meanwhile: entries are only added, and a version has one value for each.
    """

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._terms: tuple[dict[str, float], dict[str, int]] = {}, {}
        self._passages: dict[int, NDArray[np.int64]] = {}

    def weigh(self, reader: Reader, questions: Sequence[ReadQuestion]) -> list[ReadQuestion]:
        """Return the questions with the idf of their words."""
        idf, _ = self._look_up(reader, {term for question in questions for term in question.terms})
        return [replace(question, words={term: idf[term] for term in question.terms}) for question in questions]

    def measure_shares(
        self, reader: Reader, questions: Sequence[tuple[ReadQuestion, AbstractSet[int]]]
    ) -> list[dict[int, float]]:
        """For each weighed question and its passages, passage -> share of the question's words that it has."""
        terms = self._read_passages(reader, set().union(*(passages for _, passages in questions)))
        _, ids = self._look_up(reader, set().union(*(question.words for question, _ in questions)))
        shares = []
        for question, passages in questions:
            known = sorted((ids[term], idf) for term, idf in question.words.items() if term in ids)
            term_ids = np.array([term for term, _ in known], dtype=np.int64)
            weights = np.array([idf for _, idf in known]) / max(sum(question.words.values()), SMALLEST_IDF)
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
class MeasuredQuestions:
    """Spread of one collection's questions, of one sample.

    Attributes:
        rows: question of the sample or near one -> its row in ``placed``.
    """

    spread: QuestionSpread
    rows: Mapping[int, int]
    placed: PlacedQuestions

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


def _key(collection: Collection) -> Hashable:
    """Return what is measured: a collection, or what some of its readers see of it."""
    return collection.id, tenancy.get_visibility().readers


class _LatestMeasures(Generic[Measured]):
    """Measures of the latest version of each collection. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: OrderedDict[Hashable, tuple[Hashable, Measured]] = OrderedDict()

    def find(self, collection: Hashable, version: Hashable, measure: Callable[[], Measured]) -> Measured:
        """Return what was measured of this version, else measure it, and hold it unless it is None."""
        with self._lock:
            held = self._held.get(collection)
            if held is not None and held[0] == version:
                self._held.move_to_end(collection)
                return held[1]
        measured = measure()
        if measured is None:
            return measured
        with self._lock:
            self._held[collection] = (version, measured)
            self._held.move_to_end(collection)
            if len(self._held) > MOST_COLLECTIONS:
                self._held.popitem(last=False)
        return measured


class QuestionSpreads:
    """Spreads of collections' questions, each measured on the snapshot that first asks for its sample.

    Processes that serve the same sample come to the same spread, except for what verdicts said since of its
    questions, and for less than ``RENEWED_SHARE`` of the passages. What is taken back, hidden or deleted begins
    another sample at once. Safe to share between threads.
    """

    def __init__(self, load_language: Callable[[], Language]) -> None:
        """``load_language``: of what finds names and dates in questions, called once there are some to compare."""
        self._read = lru_cache(maxsize=MOST_QUESTIONS)(partial(_read, load_language))
        self._terms: _LatestMeasures[PassageTerms] = _LatestMeasures()
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
        if current is None or not questions:
            return None
        measured, terms = self.find(reader, collection, current), self.find_terms(collection, current)
        if measured is None:
            return None
        spread, ids = measured.spread, [one.question_id for one in questions]
        own, *others = terms.weigh(reader, self.read(collection, [question, *(one.question for one in questions)]))
        foreign = np.array([own.is_foreign_to(other) for other in others])
        cosines = np.array([one.similarity for one in questions])
        own_place, placed = spread.place(vector[None, :]), measured.place(reader, collection, ids)

        def measure_nearness(units: QuestionUnits) -> tuple[Floats, Floats]:
            """Nearness of each pair by itself and in the vote."""
            return (
                units.standardise(cosines, own_place.along, placed.along),
                spread.scatter.standardise(units, cosines, own_place, placed),
            )

        nearness, vote_nearness = measure_nearness(spread.units)
        adapted = spread.units
        if foreign.any():
            adapted = adapted.fit_to_other_languages(
                vector.astype(np.float64), self._load_foreign(reader, collection, current, own)
            )
            own_nearness, own_vote_nearness = measure_nearness(adapted)
            nearness = np.where(foreign, own_nearness, nearness)
            vote_nearness = np.where(foreign, own_vote_nearness, vote_nearness)
        signals = Signals.compare(nearness, [(own, other) for other in others])
        signals = replace(
            signals,
            words=np.where(foreign, np.nan, signals.words),
            cross_language=foreign & (adapted is not spread.units),
        )
        identical = np.array([other.key == own.key for other in others])
        readable = {id_ for id_, is_foreign in zip(ids, foreign.tolist(), strict=True) if not is_foreign}
        passages = set[int]().union(*evidence.values())
        # To a question in another language than all who support a passage, its words say nothing.
        apart = passages.difference(*(evidence[one] for one in readable & evidence.keys()))
        (word_shares,) = terms.measure_shares(reader, [(own, passages)])
        word_shares |= dict.fromkeys(apart, np.nan)
        return ComparedQuestions(spread, ids, signals, vote_nearness, identical, word_shares)

    def find(self, reader: Reader, collection: Collection, current: Current) -> MeasuredQuestions | None:
        """Return the spread of the questions that are sampled; None if the caller sees no passages."""
        size = round(log1p(collection.passage_count) / log1p(RENEWED_SHARE))
        return self._questions.find(
            _key(collection),
            (current.space, current.questions, size),
            lambda: self._measure_questions(reader, collection, current),
        )

    def find_terms(self, collection: Collection, current: Current) -> PassageTerms:
        """Return the terms of this version's passages."""
        return self._terms.find(_key(collection), current.base_keys, lambda: PassageTerms(collection))

    def read(self, collection: Collection, texts: Sequence[str]) -> list[ReadQuestion]:
        """Read the texts of questions, whose words are still to be weighed."""
        languages = tuple(collection.languages.items())
        return [self._read(text, languages) for text in texts]

    def _load_foreign(
        self, reader: Reader, collection: Collection, current: Current, own: ReadQuestion
    ) -> NDArray[np.float32]:
        """Load vectors of judged questions in other languages than this one, (n, d)."""
        _, texts, vectors = question_samples.load_question_vectors(
            reader, collection.id, current.sampled_until, SAMPLED_QUESTIONS
        )
        read = self.read(collection, texts)
        return vectors[[row for row, question in enumerate(read) if own.is_foreign_to(question)]]

    def _measure_questions(
        self, reader: Reader, collection: Collection, current: Current
    ) -> MeasuredQuestions | None:
        passages = question_samples.load_passage_sample(reader, collection.id, SAMPLED_PASSAGES)
        if not len(passages):
            return None
        terms, until = self.find_terms(collection, current), current.sampled_until
        sample = question_samples.load_question_sample(reader, collection, until, SAMPLED_QUESTIONS, NEIGHBOURS)
        spread_of_passages = question_units.measure_passages(passages)
        units = question_units.measure_units(spread_of_passages, sample.vectors[: sample.size])
        judged = self._compare_sample(reader, collection, sample, units, terms)
        latest = question_samples.load_asked_sample(reader, collection, until, SAMPLED_ASKED, NEIGHBOURS)
        asked = self._compare_sample(reader, collection, latest, units, terms)
        spread = same_need.measure_spread(units, judged, asked)
        rows = {question: row for row, question in enumerate(sample.ids)}
        return MeasuredQuestions(spread, rows, spread.place(judged.vectors))

    def _compare_sample(
        self,
        reader: Reader,
        collection: Collection,
        sample: QuestionSample,
        units: QuestionUnits,
        terms: PassageTerms,
    ) -> NearPairs:
        """Compare each question of a sample with its neighbours."""
        read = terms.weigh(reader, self.read(collection, sample.texts))
        rows, neighbours = sample.rows, sample.neighbours
        pairs = list(zip(rows.tolist(), neighbours.tolist(), strict=True))
        along = sample.vectors.astype(np.float64).reshape(-1, len(units.centre)) @ units.centre
        signals = Signals.compare(
            units.standardise(sample.similarity, along[rows], along[neighbours]),
            [(read[one], read[other]) for one, other in pairs],
        )
        passages: dict[int, set[int]] = {}
        for one, other in pairs:
            passages.setdefault(one, set()).update(sample.evidence[other])
        shares = terms.measure_shares(reader, [(read[row], near) for row, near in passages.items()])
        word_shares = dict(zip(passages, shares, strict=True))
        return NearPairs(sample.evidence, rows, neighbours, signals, sample.vectors, word_shares)


def _read(load_language: Callable[[], Language], text: str, languages: tuple[tuple[str, int], ...]) -> ReadQuestion:
    own = detect_language(text)
    usual = max(languages, key=lambda pair: pair[1], default=(None, 0))[0]
    return ReadQuestion(
        question_hash(text),
        sorted(question_terms(text, dict(languages))),
        own,
        read_marks(text, load_language().analyse_question(text, own or usual)),
    )
