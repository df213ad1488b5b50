"""Spreads of collections' questions, by which a process tells whether a past question has the need of a new one."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engram.core.filter.states import question_hash
from engram.core.ranking import bm25, same_need
from engram.core.ranking.same_need import QuestionSpread, SameNeed, Signals
from engram.providers.language import terms
from engram.services.retrieval.query_plan import QueryPlan
from engram.storage.corpus import lexical_index
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.current_vectors import Current
from engram.storage.database import Reader
from engram.storage.learning import question_samples
from engram.storage.learning.question_samples import QuestionSample

SAMPLED_QUESTIONS = 256
SAMPLED_PASSAGES = 256
MOST_COLLECTIONS = 500
"""Collections whose spreads a process keeps: about 100 kB each."""
MOST_TERMS = 20_000
"""Terms of a collection whose passages a process keeps counts of."""
MOST_QUESTIONS = 5_000
"""Questions that a process remembers the terms of."""


class PastQuestion(Protocol):
    """A judged question near to the present one."""

    @property
    def question_id(self) -> int: ...
    @property
    def question(self) -> str: ...
    @property
    def similarity(self) -> float: ...


class _TermRarity:
    """Idf of terms in one version of a collection, looked up as they are needed."""

    def __init__(self, collection: Collection) -> None:
        self._collection = collection
        self._passages = 0
        self._counts: dict[str, int] = {}

    def weigh(self, reader: Reader, texts: Sequence[Sequence[str]]) -> list[dict[str, float]]:
        """Return term -> idf for each text of terms."""
        counts = self._counts if len(self._counts) <= MOST_TERMS else {}
        unknown = sorted({term for text in texts for term in text} - counts.keys())
        if unknown:
            self._passages, found = lexical_index.passage_counts(reader, self._collection, unknown)
            self._counts = counts = counts | dict.fromkeys(unknown, 0) | found
        idf = [bm25.inverse_document_frequency(self._passages, [counts[term] for term in text]) for text in texts]
        return [dict(zip(text, values.tolist(), strict=True)) for text, values in zip(texts, idf, strict=True)]


@dataclass(frozen=True, slots=True)
class _MeasuredQuestions:
    """Spread of one collection's questions in one version.

    Attributes:
        along: sampled question -> inner product of its vector with the centre.
    """

    spread: QuestionSpread
    along: dict[int, float]
    rarity: _TermRarity


class QuestionSpreads:
    """Spreads of collections' questions, each measured on the snapshot that first asks for its version.

    Processes that serve the same version come to the same spread. Safe to share between threads.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._measured: OrderedDict[tuple[int, Current], _MeasuredQuestions | None] = OrderedDict()

    def compare(
        self, reader: Reader, plan: QueryPlan, current: Current, past: Sequence[PastQuestion]
    ) -> dict[int, SameNeed]:
        """Return past question -> how sure it is that it has the need of the plan's question.

        Args:
            current: versions of the collection in the reader's snapshot.
            past: several may be of one question.
        """
        questions = list({one.question_id: one for one in past}.values())
        measured = self._find(reader, plan.collection, current) if questions else None
        if measured is None:
            return {}
        units = measured.spread.units
        missing = [one.question_id for one in questions if one.question_id not in measured.along]
        along = measured.along
        if missing:
            along = along | question_samples.project_questions(reader, plan.collection.id, missing, units.centre)
        own_words, *words = measured.rarity.weigh(
            reader, [_list_terms(text) for text in (plan.query.text, *(one.question for one in questions))]
        )
        figures = same_need.find_figures(plan.query.text)
        past_figures = [same_need.find_figures(one.question) for one in questions]
        own = float(plan.focus.vector.astype(np.float64) @ units.centre)
        pairs = Signals(
            units.standardise(
                np.array([one.similarity for one in questions]),
                np.full(len(questions), own),
                np.array([along[one.question_id] for one in questions]),
            ),
            np.array([same_need.compare_words(own_words, other) for other in words]),
            np.array([same_need.do_figures_differ(figures, other) for other in past_figures]),
        )
        key = question_hash(plan.query.text)
        identical = np.array([question_hash(one.question) == key for one in questions])
        needs = measured.spread.compare(pairs, identical)
        return dict(zip((one.question_id for one in questions), needs, strict=True))

    def _find(self, reader: Reader, collection: Collection, current: Current) -> _MeasuredQuestions | None:
        """Return the measured spread of this version, measured now if it is asked for the first time."""
        key = (collection.id, current)
        with self._lock:
            if key in self._measured:
                self._measured.move_to_end(key)
                return self._measured[key]
        measured = _measure(reader, collection)
        with self._lock:
            for stale in [other for other in self._measured if other[0] == collection.id]:
                del self._measured[stale]
            self._measured[key] = measured
            if len(self._measured) > MOST_COLLECTIONS:
                self._measured.popitem(last=False)
        return measured


def _measure(reader: Reader, collection: Collection) -> _MeasuredQuestions | None:
    """Measure the spread of a collection's questions; None if it has no passages."""
    passages = question_samples.load_passage_sample(reader, collection.id, SAMPLED_PASSAGES)
    if not len(passages):
        return None
    sample = question_samples.load_question_sample(reader, collection.id, SAMPLED_QUESTIONS)
    units = same_need.measure_units(passages, sample.vectors)
    rarity = _TermRarity(collection)
    return _MeasuredQuestions(
        same_need.measure_spread(
            units,
            sample.vectors,
            sample.evidence,
            rarity.weigh(reader, [_list_terms(text) for text in sample.texts]),
            [same_need.find_figures(text) for text in sample.texts],
            sample.population,
        ),
        dict(zip(sample.ids, _project(sample, units.centre), strict=True)),
        rarity,
    )


@lru_cache(maxsize=MOST_QUESTIONS)
def _list_terms(text: str) -> Sequence[str]:
    """Terms of a question, each once."""
    return tuple(sorted(set(terms(text))))


def _project(sample: QuestionSample, centre: NDArray[np.float64]) -> list[float]:
    """Inner product of each sampled question's vector with the centre."""
    along: list[float] = (sample.vectors.astype(np.float64) @ centre).tolist() if sample.ids else []
    return along
