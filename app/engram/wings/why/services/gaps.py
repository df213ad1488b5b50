"""Gaps: needs that a collection did not meet, by the questions that were asked of it.

All of it is derived from stored queries and verdicts when somebody looks, so what is erased is gone from it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from engram.composition.models import Models
from engram.core.ranking.question_pairs import ReadQuestion, Signals
from engram.core.ranking.weight_beliefs import sigmoid
from engram.services.auth.scope import Scope
from engram.services.question.question_spreads import MeasuredQuestions, QuestionSpreads
from engram.services.question.sufficiency import find_level
from engram.storage.corpus import current_vectors
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database, Reader
from engram.wings.why.storage import asked_questions
from engram.wings.why.storage.asked_questions import AskedQuestion, PassageOrigin

MOST_QUERIES = 1_000
"""Queries that are looked at, the latest: bounds time."""
MOST_WORDINGS = 200
"""Wordings that are compared, the most frequent of those that were not answered: bounds time."""
NEAREST_WORDINGS = 100
"""Wordings that each of them is compared with, the nearest."""
SHOWN_WORDINGS = 5
SAME_NEED = 0.5
"""Probability from which on two questions have the same need."""


@dataclass(frozen=True, slots=True)
class Later:
    """Events after a need was last not met.

    Attributes:
        answered_at: when it was asked again and answered; ``query_id`` by which query. None: it was not.
        documents: that came or changed in between, and that this answer shows passages of.
        feedback_id: the last verdict since then, on a query of the need, that names what helped; None: none does.
    """

    answered_at: datetime | None
    query_id: UUID | None
    documents: Sequence[str]
    feedback_id: int | None


@dataclass(frozen=True, slots=True)
class UnmetNeed:
    """A need that was not met.

    Attributes:
        question: the most frequent wording; ``wordings`` has further ones.
        queries: that were not answered.
        people: principals who asked them.
        denials: verdicts that call their answers not enough, or thumbs down, see ``AskedQuestion``.
        sufficiency: the mean of their answers, in [0, 1]; None where features did not rank.
        last_query_id: the last of them.
        documents: nearest to it, the nearest first; those that the caller sees.
    """

    question: str
    wordings: Sequence[str]
    queries: int
    people: int
    denials: int
    sufficiency: float | None
    first_at: datetime
    last_at: datetime
    last_query_id: UUID
    documents: Sequence[str]
    later: Later


@dataclass(frozen=True, slots=True)
class UnmetNeeds:
    """Gaps of a collection, open ones first and of these the most frequent.

    Attributes:
        level: sufficiency below which a question was not answered.
        queries: that were looked at.
    """

    level: float
    since: datetime
    queries: int
    gaps: Sequence[UnmetNeed]


class GapService:
    """Finds what could not be answered."""

    def __init__(self, database: Database, models: Models, spreads: QuestionSpreads) -> None:
        self._database = database
        self._models = models
        self._spreads = spreads

    def find(self, scope: Scope, days: float, limit: int) -> UnmetNeeds:
        """Find the needs that were not met in the last days, at most ``limit``.

        A question was not answered if its sufficiency is below the collection's level, or if a verdict calls its
        answer not enough or gives it a thumb down.
        """
        collection = scope.collection
        level, _ = find_level(collection, self._models.priors.select_kind(collection.corpus_kind))
        since = datetime.now(UTC) - timedelta(days=days)
        with self._database.snapshot() as reader:
            asked, vectors = asked_questions.list_asked(
                reader, collection.id, collection.space, since, MOST_QUERIES
            )
            groups = self._group(reader, collection, asked, vectors, level)
            passages = {passage for one in asked for passage in one.nearest}
            origins = asked_questions.load_origins(reader, collection.id, sorted(passages))
        gaps = [_describe(group, level, origins) for group in groups]
        gaps.sort(key=lambda gap: (gap.later.answered_at is not None, -gap.queries, -gap.last_at.timestamp()))
        return UnmetNeeds(level, since, len(asked), gaps[:limit])

    def _group(
        self,
        reader: Reader,
        collection: Collection,
        asked: Sequence[AskedQuestion],
        vectors: NDArray[np.float32],
        level: float,
    ) -> list[list[AskedQuestion]]:
        """Group queries by the same need: unanswered wordings, most frequent first, take in what is like them."""
        by_wording: dict[str, list[int]] = {}
        for place, one in enumerate(asked):
            by_wording.setdefault(one.question, []).append(place)
        unanswered = Counter(one.question for one in asked if _is_unanswered(one, level))
        leading = [wording for wording, _ in unanswered.most_common(MOST_WORDINGS)]
        if not leading:
            return []
        wordings = [*leading, *(wording for wording in by_wording if wording not in leading)]
        current = current_vectors.find_current(reader, collection.id)
        vectors = vectors[[by_wording[wording][0] for wording in wordings]]
        measured = None if current is None else self._spreads.find(reader, collection, current)
        read = self._spreads.read(collection, wordings)
        if current is not None and measured is not None:
            read = self._spreads.find_terms(collection, current).weigh(reader, read)
        precise = vectors.astype(np.float64)
        groups: list[list[AskedQuestion]] = []
        free = np.ones(len(wordings), dtype=np.bool_)
        for place in range(len(leading)):
            if not free[place]:
                continue
            others = np.flatnonzero(free)
            nearest = np.argsort(-(vectors[others] @ vectors[place]), kind="stable")[:NEAREST_WORDINGS]
            others = others[nearest]
            members = others[_estimate_same_need(measured, read, precise, place, others) >= SAME_NEED]
            free[members] = False
            groups.append([asked[one] for wording in members.tolist() for one in by_wording[wordings[wording]]])
        return groups


def _estimate_same_need(
    measured: MeasuredQuestions | None,
    questions: Sequence[ReadQuestion],
    vectors: NDArray[np.float64],
    one: int,
    others: NDArray[np.intp],
) -> NDArray[np.float64]:
    """Probability that a question has the need of each of the others by itself, (k,).

    Args:
        measured: spread of the collection's questions; None if it has no passages: then only equal texts have the
            same need.
        vectors: of each question, of length 1, (n, d).
    """
    own, compared = questions[one], [questions[other] for other in others.tolist()]
    identical = np.array([other.key == own.key for other in compared], dtype=np.bool_)
    if measured is None:
        return identical.astype(np.float64)
    units = measured.spread.units
    along = vectors @ units.centre
    nearness = units.standardise(vectors[others] @ vectors[one], along[[one]], along[others])
    signals = Signals.compare(nearness, [(own, other) for other in compared])
    foreign = np.array([own.is_foreign_to(other) for other in compared])
    signals = replace(signals, words=np.where(foreign, np.nan, signals.words))
    return np.where(identical, 1.0, sigmoid(measured.spread.compute_log_odds(signals)))


def _is_unanswered(one: AskedQuestion, level: float) -> bool:
    return one.denials > 0 or (one.sufficiency is not None and one.sufficiency < level)


def _describe(group: Sequence[AskedQuestion], level: float, origins: Mapping[int, PassageOrigin]) -> UnmetNeed:
    """Describe a group of queries of one need, of which some were not answered."""
    missed = sorted((one for one in group if _is_unanswered(one, level)), key=lambda one: one.created_at)
    last = missed[-1]
    wordings = [wording for wording, _ in Counter(one.question for one in missed).most_common(SHOWN_WORDINGS)]
    values = [one.sufficiency for one in missed if one.sufficiency is not None]
    nearest = [origins[passage].document for passage in last.nearest if passage in origins]
    return UnmetNeed(
        question=wordings[0],
        wordings=wordings[1:],
        queries=len(missed),
        people=len({one.principal for one in missed}),
        denials=sum(one.denials for one in missed),
        sufficiency=float(np.mean(values)) if values else None,
        first_at=missed[0].created_at,
        last_at=last.created_at,
        last_query_id=last.id,
        documents=list(dict.fromkeys(nearest)),
        later=_find_later(group, last, level, origins),
    )


def _find_later(
    group: Sequence[AskedQuestion], last: AskedQuestion, level: float, origins: Mapping[int, PassageOrigin]
) -> Later:
    answered = min(
        (one for one in group if one.created_at > last.created_at and not _is_unanswered(one, level)),
        key=lambda one: one.created_at,
        default=None,
    )
    supporting_events = [one.supporting_event for one in group if one.supporting_event is not None]
    events = [event for event, at in supporting_events if at > last.created_at]
    nearest = () if answered is None else answered.nearest
    new = [
        origins[passage].document
        for passage in nearest
        if passage in origins and origins[passage].text_since > last.created_at
    ]
    return Later(
        None if answered is None else answered.created_at,
        None if answered is None else answered.id,
        list(dict.fromkeys(new)),
        max(events, default=None),
    )
