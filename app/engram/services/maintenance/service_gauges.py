"""Gauges looked up when metrics are read: backlog, jobs, indexes, workers and pools."""

import threading
import time
from collections.abc import Iterable, Mapping

import structlog
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from engram.context import tenancy
from engram.context.errors import EngramError
from engram.storage.database import Database
from engram.storage.maintenance import gauge_queries
from engram.storage.maintenance.backlog import backlog
from engram.storage.wake_stream import WakeStream

log = structlog.get_logger(__name__)

FRESH_SECONDS = 5.0
"""What was looked up is told for so long, whoever reads how often."""


class SharedGauges:
    """Looks at the state that all processes share, and at the pools of this one."""

    def __init__(self, database: Database, stream: WakeStream) -> None:
        self._database = database
        self._stream = stream
        self._lock = threading.Lock()
        self._metrics: list[Metric] = []
        self._collected_at = -FRESH_SECONDS

    def metrics(self) -> Iterable[Metric]:
        """Return the present metrics; without Postgres, that it is away and what is known without it."""
        with self._lock:
            if time.monotonic() - self._collected_at >= FRESH_SECONDS:
                self._metrics = list(self._collect_shared())
                self._collected_at = time.monotonic()
            return [*self._metrics, *self._pools()]

    def _pools(self) -> Iterable[Metric]:
        in_use = GaugeMetricFamily("engram_pool_in_use", "Connections of a pool that are lent.", labels=["pool"])
        size = GaugeMetricFamily("engram_pool_size", "Connections that a pool may lend.", labels=["pool"])
        for name, pool in self._database.pools().items():
            in_use.add_metric([name], pool.in_use)
            size.add_metric([name], pool.size)
        return in_use, size

    def _collect_shared(self) -> Iterable[Metric]:
        gauges: list[Metric] = []
        try:
            gauges += self._collect_stored()
        except EngramError as error:
            log.warning("state not read for metrics", error=error.detail)
        workers = self._stream.workers()
        gauges.append(_gauge("postgres_up", "Whether Postgres answered.", 1 if len(gauges) > 0 else 0))
        gauges.append(_gauge("redis_up", "Whether Redis answered.", 0 if workers is None else 1))
        if workers is not None:
            gauges.append(_gauge("workers", "Workers that beat lately.", workers))
        return gauges

    def _collect_stored(self) -> Iterable[Metric]:
        # Of all tenants, whoever asks: what is seen is told to others as well.
        with tenancy.allow_all_tenants(), self._database.snapshot() as reader:
            waiting, counts = backlog(reader), gauge_queries.counts(reader)
            jobs, indexes = gauge_queries.open_jobs(reader), gauge_queries.vector_indexes(reader)
        seconds = {"verdicts": waiting.verdict_seconds or 0.0, "jobs": waiting.job_seconds or 0.0}
        yield _build_labelled("backlog_seconds", "How long the oldest of what waits has waited.", "of", seconds)
        yield _gauge("verdicts_pending", "Verdicts that wait.", counts.pending)
        yield _gauge("verdicts_parked", "Verdicts that could not be applied.", counts.parked)
        yield _gauge("collections", "Collections.", counts.collections)
        yield _gauge("database_bytes", "Size of the database.", counts.database_bytes)
        open_jobs = GaugeMetricFamily("engram_jobs", "Jobs that are not over.", labels=["kind", "status"])
        for row in jobs:
            open_jobs.add_metric([row.kind, row.status], row.count)
        yield open_jobs
        sized = {row.table: row.bytes for row in indexes}
        yield _build_labelled("indexes", "Vector indexes.", "table", {row.table: row.count for row in indexes})
        invalid = {row.table: row.invalid for row in indexes}
        yield _build_labelled("indexes_invalid", "Vector indexes that no query may use.", "table", invalid)
        yield _build_labelled("index_bytes", "Size of the vector indexes.", "table", sized)


def _gauge(name: str, description: str, value: float) -> Metric:
    return GaugeMetricFamily(f"engram_{name}", description, value=value)


def _build_labelled(name: str, description: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(f"engram_{name}", description, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family
