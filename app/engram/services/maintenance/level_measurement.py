"""Measuring what a collection's sufficiency means, by questions made from its own passages.

A question is every other content word of a statement. It is asked with the statement's passage, and without it and
its near-duplicates. The latter answers are absent, so no label is needed. They tell from which sufficiency on
answers are shown, and both tell what is stated (``core.ranking.withholding_level``).
"""

import math
import re
import time
from collections.abc import Callable, Sequence

import numpy as np
import structlog

from engram.context.errors import EngramError
from engram.core.ranking.weight_beliefs import Floats, sigmoid
from engram.core.ranking.withholding_level import compute_masked_level, compute_midpoint
from engram.core.text.headings import find_headings
from engram.providers.language import content_terms
from engram.providers.ranking_prior import RankingPriors
from engram.services.auth.scope import Principal, Scope
from engram.services.encoders.encoder import Encoder
from engram.services.question.query import Query
from engram.services.question.search import RetrievalResult, RetrievalService
from engram.storage.corpus import measured_levels, passages
from engram.storage.corpus.collections import Collection, MeasuredLevel, load_by_id
from engram.storage.database import Database

log = structlog.get_logger(__name__)

QUESTIONS = 64
"""Questions at most, of as many passages where there are so many."""
STATEMENTS = 3
"""Statements of one passage, at most, that become questions."""
LEAST_QUESTIONS = 12
"""Questions without which a sample tells too little: three or four of them lie below the level."""
_WORD = re.compile(r"[\w'’-]+")
LEAST_WORDS = 3
"""Words of a question, at least."""
MOST_WORDS = 32
"""Words of a question, at most; people ask shorter ones, and a table can be read as one sentence."""
COLLECTIONS = 8
"""Collections that one run measures, at most: other processes get their turn between runs."""
RETRY_SECONDS = 600.0
"""How long a collection waits that this process could not measure."""
GROWTH = 1.25
"""Factor by which the number of passages changes before a level is measured again."""
ASKER = "level-measurement"
"""Principal that asks; its questions are kept nowhere."""


class LevelMeasurement:
    """Measures the levels of collections."""

    def __init__(
        self,
        database: Database,
        retrieve: Callable[[], RetrievalService],
        priors: Callable[[], RankingPriors],
        encoder: Callable[[], Encoder],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Keep what is measured with.

        Args:
            retrieve: what asks, without a reranker; made when the first level is measured.
            priors: of the weights of sufficiency.
            encoder: tells which questions are too long.
            clock: seconds that only grow.
        """
        self._database = database
        self._retrieve = retrieve
        self._priors = priors
        self._encoder = encoder
        self._clock = clock
        self._retry_at: dict[int, float] = {}

    def run(self, should_stop: Callable[[], bool] = lambda: False) -> int:
        """Measure collections whose level is missing or stale, ``COLLECTIONS`` at most; how many were measured.

        One process does so at a time.
        """
        measured = 0
        with self._database.hold_lock("levels") as is_locked:
            if not is_locked:
                return 0
            for collection_id in self._list_due():
                if should_stop():
                    break
                measured += self._try(collection_id)
        return measured

    def measure(self, collection: Collection) -> MeasuredLevel:
        """Measure one collection; store its level and return it.

        Raises:
            EngramError: it cannot be measured now, as when its encoder is away.
        """
        prior = self._priors().select_kind(collection.corpus_kind)
        answers = [self._ask_both_ways(collection, *derived) for derived in self._derive_questions(collection)]
        features = np.array([both for both in answers if all(map(len, both))])
        value = midpoint = None
        if len(features) >= LEAST_QUESTIONS:
            present, absent = (features @ prior.sufficiency.mean).T
            value, midpoint = float(sigmoid(compute_masked_level(absent))), compute_midpoint(present, absent)
        level = MeasuredLevel(
            value, prior.sufficiency_name, collection.space, collection.passage_count, midpoint=midpoint
        )
        with self._database.write() as writer:
            measured_levels.keep(writer, collection.id, level)
        log.info(
            "level measured", collection=collection.name, level=value, midpoint=midpoint, questions=len(features)
        )
        return level

    def _list_due(self) -> list[int]:
        """Collections that the next run measures, without those that wait after a failure."""
        now = self._clock()
        self._retry_at = {one: until for one, until in self._retry_at.items() if until > now}
        with self._database.read() as reader:
            collections = measured_levels.list_measurable(reader, LEAST_QUESTIONS)
        due = [one.id for one in collections if one.id not in self._retry_at and not self._is_current(one)]
        return due[:COLLECTIONS]

    def _try(self, collection_id: int) -> bool:
        """Measure a collection as it is by now; after a failure of any kind it waits, and others get their turn."""
        is_measured = False
        try:
            with self._database.read() as reader:
                collection = load_by_id(reader, collection_id)
            self.measure(collection)
            is_measured = True
        except EngramError as error:
            log.warning("level left for later", collection=collection_id, reason=error.detail)
        finally:
            if not is_measured:
                self._retry_at[collection_id] = self._clock() + RETRY_SECONDS
        return is_measured

    def _is_current(self, collection: Collection) -> bool:
        level = collection.level
        return (
            level is not None
            and level.space == collection.space
            and (level.value is None or level.midpoint is not None)
            and level.prior == self._priors().select_kind(collection.corpus_kind).sufficiency_name
            and level.passages / GROWTH <= collection.passage_count <= level.passages * GROWTH
        )

    def _derive_questions(self, collection: Collection) -> list[tuple[int, str]]:
        """Return the questions that sampled passages give, each with its passage, without any that is too long."""
        with self._database.read() as reader:
            sampled = measured_levels.sample_passages(reader, collection.id, QUESTIONS)
            stored = passages.load_by_id(reader, collection.id, sampled)
            sentences: dict[int, list[str]] = {}
            for one in passages.list_sentences(reader, collection.id, sampled):
                sentences.setdefault(one.passage_id, []).append(one.text)
        count = min(math.ceil(QUESTIONS / max(len(sentences), 1)), STATEMENTS)
        encoder = self._encoder()
        return [
            (passage, question)
            for passage, texts in sentences.items()
            for question in derive_questions(stored[passage].title, texts, stored[passage].language, count)
            if not encoder.count_excess(question)
        ][:QUESTIONS]

    def _ask_both_ways(self, collection: Collection, passage: int, question: str) -> tuple[Floats, Floats]:
        """Ask with the passage, and without it and its near-duplicates.

        Returns:
            Features of the two answers, empty where nothing is found.
        """
        retrieved = self._ask(collection, question)
        stand_ins = retrieved.ranking.stand_in_by_passage
        leading = stand_ins.get(passage, passage)
        alike = {passage, leading, *(one for one, other in stand_ins.items() if other == leading)}
        masked = self._ask(collection, question, sorted(alike))
        return _read_features(retrieved), _read_features(masked)

    def _ask(self, collection: Collection, question: str, without: Sequence[int] = ()) -> RetrievalResult:
        scope = Scope(Principal(ASKER, collection.tenant), collection)
        retrieve = self._retrieve()
        return retrieve.find(retrieve.plan(Query(text=question, scope=scope, memory="off", without=without)))


def _read_features(retrieved: RetrievalResult) -> Floats:
    estimate = retrieved.ranking.sufficiency
    return np.zeros(0) if estimate is None else estimate.features


def derive_questions(title: str | None, sentences: Sequence[str], language: str, count: int) -> list[str]:
    """Make questions from the ``count`` longest statements of a passage: every other content word of each.

    A question has ``LEAST_WORDS`` to ``MOST_WORDS`` words. Questions of people have some of a sentence's words. A
    whole sentence would be nearer to other passages on its subject than they are.

    Args:
        sentences: of the passage, in order; headings among them give none, and short ones neither.
        language: of the passage.
    """
    content = [
        [word for word in dict.fromkeys(_WORD.findall(sentence)) if content_terms(word, language)][::2]
        for sentence, is_heading in zip(sentences, find_headings(title, sentences), strict=True)
        if not is_heading
    ]
    longest = sorted(content, key=len, reverse=True)[:count]
    return [" ".join(words[:MOST_WORDS]) for words in longest if len(words) >= LEAST_WORDS]
