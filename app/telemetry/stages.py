"""The seams: a stage is timed and, where traces are on, a span."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from app.telemetry import tracing
from app.telemetry.metrics import JOB_SECONDS, JOBS, LLM_CALLS, LLM_SECONDS, STAGE_SECONDS

Stage = Literal[
    # of a query
    "analyse",
    "embed",
    "align",
    "walk",
    "rank",
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
]


@contextmanager
def stage(name: Stage) -> Iterator[None]:
    """The block is this stage."""
    began = time.perf_counter()
    with tracing.span(name):
        try:
            yield
        finally:
            STAGE_SECONDS.labels(name).observe(time.perf_counter() - began)


@contextmanager
def job(kind: str) -> Iterator[None]:
    """The block is one try of a job of this kind."""
    began = time.perf_counter()
    with tracing.span("job", {"engram.job": kind}):
        try:
            yield
        finally:
            JOB_SECONDS.labels(kind).observe(time.perf_counter() - began)


def job_ended(kind: str, outcome: str) -> None:
    """Count a job, or a try of one, that came to an end."""
    JOBS.labels(kind, outcome).inc()


@contextmanager
def asking(use: str) -> Iterator[None]:
    """The block puts a question to the model, for this use."""
    began, outcome = time.perf_counter(), "failed"
    with tracing.span("llm", {"engram.use": use}):
        try:
            yield
            outcome = "answered"
        finally:
            LLM_CALLS.labels(use, outcome).inc()
            LLM_SECONDS.observe(time.perf_counter() - began)
