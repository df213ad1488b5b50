"""Metrics of this process, in a registry of their own; Prometheus reads them.

Each process counts for itself, so several of them are several targets and sums over targets are right. Where
several processes answer at one address, PROMETHEUS_MULTIPROC_DIR (prometheus_client's own variable, a folder of
theirs that is empty when the first starts) has whichever is asked answer for all of them.
"""

import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_LATEST
_registry = CollectorRegistry()

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


class Shares(Histogram):
    """A histogram that many values are told of at once: one by one they take as long as what they are of."""

    def observe_all(self, values: NDArray[np.float64]) -> None:
        """Observe each of these, (n,)."""
        self._sum.inc(float(values.sum()))
        places = np.searchsorted(np.array(self._upper_bounds), values)
        for place, count in enumerate(np.bincount(places).tolist()):
            if count:
                self._buckets[place].inc(count)


def _counter(name: str, description: str, *labels: str) -> Counter:
    return Counter(f"engram_{name}", description, labels, registry=_registry)


def _histogram(name: str, description: str, buckets: Sequence[float], *labels: str) -> Histogram:
    return Histogram(f"engram_{name}", description, labels, registry=_registry, buckets=buckets)


REQUESTS = _counter("requests", "Requests answered, by the route's template.", "route", "method", "status")
REQUEST_SECONDS = _histogram(
    "request_seconds", "From a request's head to the end of its answer.", _SECONDS, "route"
)
IN_HAND = Gauge(
    "engram_requests_in_hand", "Requests being answered.", registry=_registry, multiprocess_mode="livesum"
)
REQUESTS_WAITING = Gauge(
    "engram_requests_waiting", "Requests in the queue.", registry=_registry, multiprocess_mode="livesum"
)
REQUESTS_REFUSED = _counter(
    "requests_refused", "Requests refused because there were too many, by the limit.", "limit"
)
STAGE_SECONDS = _histogram("stage_seconds", "Stages of queries, verdicts and jobs.", _SECONDS, "stage")

QUERIES = _counter("queries", "Queries answered.", "strategy", "profile", "memory", "stop_reason")
HOPS = _histogram("query_hops", "Hops of a query's walk.", (0, 1, 2, 3, 4, 5, 6, 8, 10), "profile")
WARNINGS = _counter("warnings", "Parts of answers that something simpler had to give.", "code")

VERDICTS = _counter(
    "verdicts",
    "Verdicts by what became of them; contested ones were applied and contradict what other judges said.",
    "outcome",
)
JUDGE_WEIGHT = _histogram(
    "judge_weight",
    "Weight that a verdict was applied with: the mean of the Beta belief in its judge's agreement with others; 1 "
    "from where it counts as any other.",
    _SHARES,
)
VERDICT_SECONDS = _histogram("verdict_seconds", "From a verdict's arrival to its application.", _SECONDS)
GAIN = Shares(
    "engram_gain", "Kalman gain of a verdict on a state.", ["channel"], registry=_registry, buckets=_SHARES
)
PERPLEXITY = Shares(
    "engram_perplexity",
    "Perplexity that a verdict left a state with.",
    ["channel"],
    registry=_registry,
    buckets=_SHARES,
)

REPLICA_READS = _counter(
    "replica_reads",
    "Reads that a replica may answer: by it, or by the primary because it was unfit, behind, or failed.",
    "outcome",
)

JOBS = _counter("jobs_ended", "Jobs and tries of jobs that came to an end.", "kind", "outcome")
JOB_SECONDS = _histogram("job_seconds", "Tries of jobs.", (*_SECONDS, 1800.0, 7200.0), "kind")
DEAD_SHARE = Gauge(
    "engram_index_dead_share",
    "Of the worst vector index of a table, when a worker last looked: entries whose rows are gone.",
    ["table"],
    registry=_registry,
    multiprocess_mode="max",
)
INDEX_RECALL = Gauge(
    "engram_index_recall",
    "Of the worst vector index of a table, when a worker last measured: share of the ten nearest that it finds.",
    ["table"],
    registry=_registry,
    multiprocess_mode="min",
)
KEYS_KEPT = Gauge(
    "engram_keys_kept_bytes",
    "Memory that this process keeps keys of passages in.",
    registry=_registry,
    multiprocess_mode="livesum",
)
KEYS_READ = _counter("keys_read", "Times that all keys of a collection were read, to be kept.")
INDEXES_REBUILT = _counter("indexes_rebuilt", "Vector indexes built anew.", "table")

LLM_CALLS = _counter("llm_calls", "Questions put to the model, by what for.", "use", "outcome")
LLM_SECONDS = _histogram(
    "llm_seconds", "From a question to the model to its usable reply, tries included.", _SECONDS
)
LLM_TOKENS = _counter("llm_tokens", "Tokens that the endpoint counted.", "kind")

if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
    ProcessCollector(namespace="engram", registry=_registry)


def count_ended_verdicts(outcomes: Iterable[tuple[str, int]]) -> None:
    """Count verdicts by their outcomes: applied, contested, parked, failed."""
    for outcome, count in outcomes:
        VERDICTS.labels(outcome).inc(count)


def tokens(prompt: int, completion: int) -> None:
    """Count the tokens of one completion."""
    LLM_TOKENS.labels("prompt").inc(prompt)
    LLM_TOKENS.labels("completion").inc(completion)


class ScrapedMetrics(Collector):
    """Metrics that are looked up when they are asked for."""

    def __init__(self, look: Callable[[], Iterable[Metric]]) -> None:
        self._look = look

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of this moment."""
        return self._look()

    def describe(self) -> Iterable[Metric]:
        """Return nothing, since a registry would collect to find out."""
        return []


def exposition(look: Callable[[], Iterable[Metric]] | None = None) -> bytes:
    """All metrics in Prometheus's text format; ``look`` gives those of the moment."""
    pages = []
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        _forget_the_dead(Path(os.environ["PROMETHEUS_MULTIPROC_DIR"]))
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        pages.append(generate_latest(registry))
    else:
        pages.append(generate_latest(_registry))
    if look is not None:
        now = CollectorRegistry()
        now.register(ScrapedMetrics(look))
        pages.append(generate_latest(now))
    return b"".join(pages)


def _forget_the_dead(folder: Path) -> None:
    """Drop the gauges of ended processes; their counters stay."""
    named = (re.fullmatch(r"gauge_live\w*_(\d+)\.db", file.name) for file in folder.glob("gauge_live*.db"))
    for pid in {int(name[1]) for name in named if name}:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]
        except PermissionError:
            pass  # it lives
