"""The seams: a stage is timed and, where traces are on, a span."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Literal, get_args

from engram.telemetry import tracing
from engram.telemetry.metrics import JOB_SECONDS, JOBS, LLM_CALLS, LLM_SECONDS, STAGE_SECONDS

Stage = Literal[
    # of a query
    "analyse",
    "embed",
    "align",
    "walk",
    "rank",
    "rerank",
    "read",
    "keep",
    "explain",
    # of a verdict
    "accept",
    "attribute",
    "learn",
    "evolve",
    # of passages
    "draft",
    "write",
    "names",
]


class stage(AbstractContextManager[None]):  # noqa: N801 - it reads as the statement it stands in
    """The block is this stage."""

    __slots__ = ("_began", "_name", "_span")

    def __init__(self, name: Stage) -> None:
        self._name: Stage = name

    def __enter__(self) -> None:
        self._span = tracing.span(self._name)
        self._began = time.perf_counter()
        self._span.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._span.__exit__(kind, error, trace)
        finally:
            _TIMES[self._name].observe(time.perf_counter() - self._began)


_TIMES = {name: STAGE_SECONDS.labels(name) for name in get_args(Stage)}
"""Also there from the start, so that a stage that nothing went through yet is told of as 0."""


def milliseconds(start: float, end: float) -> float:
    """Milliseconds between two readings of the clock, rounded."""
    return round((end - start) * 1000.0, 3)


@contextmanager
def measure_job(kind: str) -> Iterator[None]:
    """Measure the block as one try of a job of this kind."""
    began = time.perf_counter()
    with tracing.span("job", {"engram.job": kind}):
        try:
            yield
        finally:
            JOB_SECONDS.labels(kind).observe(time.perf_counter() - began)


def count_ended_job(kind: str, outcome: str) -> None:
    """Count a job, or a try of one, that came to an end."""
    JOBS.labels(kind, outcome).inc()


@contextmanager
def measure_llm_call(use: str) -> Iterator[None]:
    """Measure the block as a call of the language model for this use."""
    began, outcome = time.perf_counter(), "failed"
    with tracing.span("llm", {"engram.use": use}):
        try:
            yield
            outcome = "answered"
        finally:
            LLM_CALLS.labels(use, outcome).inc()
            LLM_SECONDS.observe(time.perf_counter() - began)
