"""Keeping the vector indexes: large collections get them, those with too many dead entries are built anew.

What they find is measured, see ``recall``.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import structlog

from engram.context.errors import UnavailableError
from engram.services.maintenance.index_recall_guard import RecallGuard
from engram.storage.corpus import collections
from engram.storage.database import Administrator, Database
from engram.storage.maintenance import vector_indexes
from engram.storage.maintenance.vector_indexes import RowCounts, VectorIndex
from engram.telemetry import metrics

log = structlog.get_logger(__name__)
EXACT_SEARCH_LIMIT = 20_000
"""Rows up to which a collection is searched exactly; larger ones get vector indexes."""
LEAST_RECALL = 0.98
"""Share of the ten nearest that a vector index is to find; one that finds less is searched more broadly."""
Rows = Mapping[tuple[int, str], int]
"""(Collection, table) -> how many rows it holds of it."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Thresholds for rebuilding an index; both must be reached.

    Attributes:
        dead_share: dead entries over all entries, in (0, 1).
        dead_rows: dead entries.
    """

    dead_share: float
    dead_rows: int


@dataclass(frozen=True, slots=True)
class IndexHealth:
    """Health of one index, and the action taken.

    Attributes:
        live: entries whose row is there.
        dead: entries whose row is gone, before anything was done.
        share: of the dead ones in both.
        seconds: from the look at the table to the end of what was done for it.
        healed: whether it was built anew.
        recall: share of the ten nearest that it finds at this ``breadth`` of search; None: not measured.
    """

    index: str
    table: str
    live: int
    dead: int
    share: float
    bytes_before: int
    bytes_after: int
    seconds: float
    healed: bool
    recall: float | None = None
    breadth: int | None = None


class IndexMaintenanceService:
    """Gives large collections HNSW indexes and builds those anew that need it; queries and writes go on."""

    def __init__(
        self,
        database: Database,
        thresholds: Thresholds,
        *,
        memory_mb: int,
        exact_search_limit: int,
        least_recall: float = 0.0,
    ) -> None:
        """A service.

        Args:
            exact_search_limit: rows of a collection's table up to which it is searched without an index.
            least_recall: share of the ten nearest that an index is to find; 0: it is not measured.
        """
        self._database = database
        self._guard = RecallGuard(database, least_recall)
        self._thresholds = thresholds
        self._memory_mb = memory_mb
        self._exact_search_limit = exact_search_limit
        self._leftover_dead_rows: dict[str, int] = {}

    def run(
        self, *, force: bool = False, should_stop: Callable[[], bool] = lambda: False
    ) -> list[IndexHealth] | None:
        """Look at every index once, and heal.

        Args:
            force: build every index anew, whatever its state.
            should_stop: polled; once true, what is being done is given up. The next run clears up after it.

        Returns:
            One report per index, of those that were finished; None if another process is at it.

        Raises:
            ConfigurationError: this role may not maintain the indexes.
            UnavailableError: Postgres cannot be reached or has no room left.
        """
        with self._database.hold_lock("maintenance") as is_locked:
            if not is_locked:
                return None
            reports: list[IndexHealth] = []
            try:
                with self._database.administer(should_stop) as administrator:
                    self._run(administrator, force, should_stop, reports)
            except UnavailableError:
                if not should_stop():
                    raise
                log.info("index maintenance given up")
            return reports

    def _run(
        self,
        administrator: Administrator,
        force: bool,
        should_stop: Callable[[], bool],
        reports: list[IndexHealth],
    ) -> None:
        for name in vector_indexes.leftovers(administrator):
            vector_indexes.drop(administrator, name)
            log.info("dropped what an interrupted build or an earlier version left", index=name)
        rows = self._fit(administrator, should_stop)
        for table, group in groupby(vector_indexes.indexes(administrator), key=lambda index: index.table):
            if should_stop():
                return
            reports += self._look_after(administrator, table, list(group), force)
        indexes = vector_indexes.indexes(administrator)
        self._announce(administrator, indexes)
        self._measure(administrator, indexes, rows, should_stop, reports)

    def _measure(
        self,
        administrator: Administrator,
        indexes: Sequence[VectorIndex],
        rows: Rows,
        should_stop: Callable[[], bool],
        reports: list[IndexHealth],
    ) -> None:
        """Add to the reports what the indexes find."""
        places = {report.index: place for place, report in enumerate(reports)}
        least: dict[str, float] = {}
        for index in (index for index in indexes if index.valid and index.name in places):
            if should_stop():
                return
            report = reports[places[index.name]]
            row_count = rows.get((index.collection_id, index.table), 0)
            measured = self._guard.measure(
                administrator, index, row_count, rebuilt=report.healed, should_stop=should_stop
            )
            if measured is not None:
                reports[places[index.name]] = replace(report, recall=measured.recall, breadth=measured.breadth)
                least[index.table] = min(measured.recall, least.get(index.table, 1.0))
        for table, recall in least.items():
            metrics.INDEX_RECALL.labels(table).set(recall)

    def _fit(self, administrator: Administrator, should_stop: Callable[[], bool]) -> Rows:
        """Index what is large, and drop the indexes of what is gone or has become small; how large all is.

        Small is half of what is large, or a collection at the limit would have its index built again and again.
        """
        searched_rows = vector_indexes.count_searched_rows(administrator)
        rows = {(row.collection_id, row.table): row.rows for row in searched_rows}
        dimensions = {row.collection_id: row.dimension for row in searched_rows}
        built = {(index.collection_id, index.table): index for index in vector_indexes.indexes(administrator)}
        small = {at for at in built if 2 * rows.get(at, 0) <= self._exact_search_limit}
        self._announce(administrator, [index for at, index in built.items() if at not in small])
        for at in sorted(small):
            vector_indexes.drop(administrator, built[at].name)
            log.info("index dropped", index=built[at].name, rows=rows.get(at, 0))
        for table in sorted({table for _, table in small} - {table for _, table in built.keys() - small}):
            vector_indexes.leave_to_autovacuum(administrator, table)
        for collection_id, table in sorted(at for at, count in rows.items() if count > self._exact_search_limit):
            if (collection_id, table) not in built and not should_stop():
                vector_indexes.build(
                    administrator, table, collection_id, dimensions[collection_id], self._memory_mb
                )
                log.info("index built", table=table, collection_id=collection_id, rows=rows[collection_id, table])
        self._announce(administrator, vector_indexes.indexes(administrator))
        return rows

    def _announce(self, administrator: Administrator, indexes: Sequence[VectorIndex]) -> None:
        """Have queries search through these indexes and no others."""
        tables: dict[int, list[str]] = {}
        for index in indexes:
            if index.valid:
                tables.setdefault(index.collection_id, []).append(index.table)
        for collection_id, recorded_tables in vector_indexes.list_indexed_tables(administrator).items():
            if set(recorded_tables) != set(tables.get(collection_id, ())):
                with self._database.write() as writer:
                    collections.record_indexed(writer, collection_id, sorted(tables.get(collection_id, ())))

    def _look_after(
        self, administrator: Administrator, table: str, indexes: list[VectorIndex], force: bool
    ) -> list[IndexHealth]:
        """One table: its indexes are built anew together, or the VACUUM would repair the one that was not."""
        began = time.monotonic()
        rows = self._entries(administrator, table)
        share = rows.dead / max(1, rows.live + rows.dead)
        before = {index: vector_indexes.size(administrator, index) for index in indexes}
        metrics.DEAD_SHARE.labels(table).set(share)
        limits = self._thresholds
        heal = (
            force
            or not all(index.valid for index in indexes)
            or (rows.dead >= limits.dead_rows and share >= limits.dead_share)
        )
        if heal:
            for index in indexes:
                vector_indexes.rebuild(administrator, index, self._memory_mb)
                metrics.INDEXES_REBUILT.labels(table).inc()
            vector_indexes.vacuum(administrator, table)
            self._remember(administrator, table, rows.dead)
        reports = [
            IndexHealth(
                index=index.name,
                table=table,
                live=rows.live,
                dead=rows.dead,
                share=share,
                bytes_before=before[index],
                bytes_after=vector_indexes.size(administrator, index),
                seconds=time.monotonic() - began,
                healed=heal,
            )
            for index in indexes
        ]
        for report in reports if heal else ():
            log.info("index built anew", index=report.index, dead=report.dead, live=report.live, s=report.seconds)
        return reports

    def _entries(self, administrator: Administrator, table: str) -> RowCounts:
        """Live and dead entries of the table's HNSW indexes: identifiers kept since the last build are in none."""
        rows = vector_indexes.count(administrator, table)
        dead_before = self._leftover_dead_rows[table] = min(self._leftover_dead_rows.get(table, 0), rows.dead)
        return RowCounts(rows.live, rows.dead - dead_before)

    def _remember(self, administrator: Administrator, table: str, dead: int) -> None:
        """Note what VACUUM had to keep for someone's old snapshot, lest it start one build after the other."""
        self._leftover_dead_rows[table] = dead_rows = vector_indexes.count(administrator, table).dead
        if dead and dead_rows >= dead:
            log.warning(
                "dead rows are kept for an old transaction, a prepared one or a replication slot",
                table=table,
                rows=dead_rows,
            )
