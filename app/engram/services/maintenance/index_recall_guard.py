"""Guarding what vector indexes find: it is measured, and one that finds too little is searched more broadly."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import structlog

from engram.context.errors import NotFoundError
from engram.storage.corpus import collections
from engram.storage.corpus.collections import Collection, IndexRecall
from engram.storage.database import Administrator, Database, Reader
from engram.storage.maintenance import index_recall
from engram.storage.maintenance.index_recall import SAMPLES
from engram.storage.maintenance.vector_indexes import VectorIndex
from engram.storage.question.query_focus import Vector

log = structlog.get_logger(__name__)

QUESTIONS = 50
"""Searches that an index is measured by: 500 rows to be found, so that a recall of .98 is known to .006."""
MAX_BREADTH = 1000
"""The greatest breadth that pgvector searches with."""
SIZE_CHANGE = 0.25
"""An index is measured again once its collection is larger or smaller by this share,"""
MAX_AGE = timedelta(days=7)
"""or that was so long ago."""


class RecallGuard:
    """Sees that a vector index finds what it should."""

    def __init__(self, database: Database, min_recall: float) -> None:
        """``min_recall``: share of the ten nearest that is to be found, in [0, 1]; 0: nothing is measured."""
        self._database = database
        self._min_recall = min_recall

    def measure(
        self,
        administrator: Administrator,
        index: VectorIndex,
        rows: int,
        *,
        rebuilt: bool,
        should_stop: Callable[[], bool],
    ) -> IndexRecall | None:
        """Measure the recall of an index, unless a measurement still holds.

        Where it finds too little, the breadth of search is doubled until it is enough; queries go by that from then
        on. Each measurement starts at the configured breadth.

        Args:
            rows: how many the collection holds.
            rebuilt: the index was built anew, so that nothing is known.
            should_stop: polled between searches.

        Returns:
            None: it is not measured, holds nothing, or was given up.
        """
        if not self._min_recall or index.table not in SAMPLES:
            return None
        try:
            collection = collections.load_by_id(administrator, index.collection_id)
        except NotFoundError:
            return None
        last_recall = None if rebuilt else collection.index_recall.get(index.table)
        configured = index_recall.breadth(administrator)
        if last_recall is not None and self._holds(last_recall, rows, configured):
            return last_recall
        measured = self._measure_recall(administrator, collection, index.table, rows, configured, should_stop)
        if measured is not None or rebuilt:
            with self._database.write() as writer:
                collections.set_index_recall(writer, collection, index.table, measured)
        if measured is not None:
            write_log = log.warning if measured.recall < self._min_recall else log.info
            write_log(
                "index measured", index=index.name, recall=measured.recall, breadth=measured.breadth, rows=rows
            )
        return measured

    def _holds(self, last_recall: IndexRecall, rows: int, configured: int) -> bool:
        return (
            last_recall.configured == configured
            and abs(rows - last_recall.rows) <= SIZE_CHANGE * last_recall.rows
            and datetime.now(UTC) - datetime.fromisoformat(last_recall.measured_at) < MAX_AGE
            and (last_recall.recall >= self._min_recall or last_recall.breadth >= MAX_BREADTH)
        )

    def _measure_recall(
        self,
        administrator: Administrator,
        collection: Collection,
        table: str,
        rows: int,
        configured: int,
        should_stop: Callable[[], bool],
    ) -> IndexRecall | None:
        vectors = index_recall.sample_questions(administrator, collection, QUESTIONS)
        vectors += index_recall.draw_rows(administrator, collection, table, QUESTIONS - len(vectors), seed=rows)
        exact: list[Sequence[float]] = []
        for vector in vectors:
            if should_stop():
                return None
            exact.append(index_recall.measure_nearest(administrator, collection, table, vector, exact=True))
        expected = sum(map(len, exact))
        if not expected:
            return None
        breadth = configured
        while True:
            matches = _count_matches(
                administrator, index_recall.replace_breadth(collection, table, breadth), table, vectors, exact
            )
            if matches >= self._min_recall * expected or breadth >= MAX_BREADTH or should_stop():
                break
            breadth = min(2 * breadth, MAX_BREADTH)
        return IndexRecall(matches / expected, breadth, configured, rows, datetime.now(UTC).isoformat())


def _count_matches(
    reader: Reader, collection: Collection, table: str, vectors: Sequence[Vector], exact: Sequence[Sequence[float]]
) -> int:
    """Count the exact nearest of each vector that the collection's index finds."""
    return sum(
        index_recall.count_matches(
            nearest, index_recall.measure_nearest(reader, collection, table, vector, exact=False)
        )
        for vector, nearest in zip(vectors, exact, strict=True)
    )
