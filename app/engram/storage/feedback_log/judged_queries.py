"""The log's copies of judged queries, which outlive the queries."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from engram.core.learning.logged_verdict import LoggedVerdict
from engram.core.ranking.reranking import RerankedFeatures
from engram.storage.column_parameters import vectors as sent
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import WANTED_IDS, alias_rows, join_by_index

JUDGED_QUERY_JOIN = join_by_index("judged_query judged", "judged.id = event.query_id")
"""Has ``judged`` be what the ``event`` judges."""


def _read_reranked_features(
    ranked: list[int] | None, reranker: str | None, features: bytes | None
) -> RerankedFeatures | None:
    """Return the scores of a reranker for the ranked passages, as they are stored; None if there are none."""
    if not ranked or reranker is None or not features:
        return None
    return RerankedFeatures(reranker, np.frombuffer(features, dtype="<f4").reshape(len(ranked), -1))


def _read_answer_features(features: bytes | None) -> NDArray[np.float32] | None:
    """Return the features of the answer, (k,), see ``ranking.sufficiency``; None if it teaches nothing there."""
    return np.frombuffer(features, dtype="<f4") if features else None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedVerdict:
    """A verdict, and what it says of the answer that it judges.

    Attributes:
        targets: sentence -> y, see ``LoggedVerdict.targets``.
        ranked: passages that were ranked by features, (n,); None where features alone did not rank.
        answer_features: of the answer, (k,); None where it teaches nothing of sufficiency.
        reranked: scores of a reranker for ``ranked``.
        noise: observation noise R of the verdict; infinite until it is known by which constants it is applied.
        holders: sentence of ``targets`` -> its passage, of those that exist; see ``place``.
        supports_exist: whether every sentence that the verdict supports exists.
    """

    verdict: LoggedVerdict
    targets: dict[int, int]
    ranked: list[int] | None
    answer_features: NDArray[np.float32] | None
    reranked: RerankedFeatures | None
    noise: float = math.inf
    holders: Mapping[int, int] = field(default_factory=dict)
    supports_exist: bool = False

    def place(self, holders: Mapping[int, int], noise: float) -> Self:
        """Return the verdict with the passages of its sentences and its observation noise.

        Args:
            holders: sentence -> its passage, of sentences that exist.
        """
        return replace(
            self,
            noise=noise,
            holders={sentence: holders[sentence] for sentence in self.targets if sentence in holders},
            supports_exist=holders.keys() >= set(self.verdict.supports),
        )

    @property
    def judged_passages(self) -> list[tuple[int, int]]:
        """(passage, y) of each of the placed sentences."""
        return [(passage, self.targets[sentence]) for sentence, passage in self.holders.items()]


JUDGED_COLUMNS = """
    judged.activated, judged.ranked, judged.answer_features, judged.reranker, judged.reranked
"""
"""Of ``judged_query judged``, what ``read_judged`` takes."""


def read_judged(row: Any, verdict: LoggedVerdict) -> dict[str, Any]:
    """The fields of a ``JudgedVerdict``, by a row of ``JUDGED_COLUMNS``."""
    return {
        "verdict": verdict,
        "targets": verdict.targets(row.activated),
        "ranked": row.ranked,
        "answer_features": _read_answer_features(row.answer_features),
        "reranked": _read_reranked_features(row.ranked, row.reranker, row.reranked),
    }


@dataclass(frozen=True, slots=True)
class LoggedQuestion:
    """Text and time constraint of a judged question."""

    id: UUID
    question: str
    time_constraint: str | None


def list_of_other_spaces(
    reader: Reader, collection_id: int, events: Sequence[int], space: int
) -> list[LoggedQuestion]:
    """Return questions that these events judge and whose vectors are of another space."""
    rows = reader.rows(
        f"""
        SELECT DISTINCT judged.id, judged.question, judged.time_constraint FROM {WANTED_IDS}
        {join_by_index("feedback_event event", "event.id = wanted.id")} {JUDGED_QUERY_JOIN}
        WHERE judged.space <> %(space)s
        """,
        {"collection": collection_id, "ids": list(events), "space": space},
    )
    return [LoggedQuestion(**row._asdict()) for row in rows]


def put(
    writer: Writer,
    collection_id: int,
    questions: Sequence[LoggedQuestion],
    vectors: Mapping[str, NDArray[np.float32]],
    space: int,
) -> None:
    """Give what was asked these vectors, by text, unless the collection has left their space meanwhile."""
    new = "unnest(%(ids)s::uuid[], %(vectors)s::vector[], %(times)s::vector[]) AS given(id, vector, time)"
    writer.execute(
        f"""
        UPDATE judged_query judged SET embedding = new.vector, space = %(space)s,
            time_embedding = CASE WHEN judged.time_constraint IS NULL THEN NULL ELSE new.time END
        FROM {alias_rows(new)}
        WHERE judged.collection_id = new.collection_id AND judged.id = new.id
          AND (SELECT space FROM collection WHERE id = new.collection_id) = %(space)s
        """,
        {
            "collection": collection_id,
            "ids": [one.id for one in questions],
            "vectors": sent([vectors[one.question] for one in questions]),
            "times": sent([vectors[one.time_constraint or one.question] for one in questions]),
            "space": space,
        },
    )


def find_questions(reader: Reader, collection_id: int, events: Sequence[int]) -> dict[int, str]:
    """Event -> the question that was judged, of whatever became of the event."""
    rows = reader.rows(
        f"""
        SELECT event.id, judged.question FROM {WANTED_IDS}
        {join_by_index("feedback_event event", "event.id = wanted.id")}
        {join_by_index("judged_query judged", "judged.id = event.query_id")}
        """,
        {"collection": collection_id, "ids": list(events)},
    )
    return {row.id: row.question for row in rows}
