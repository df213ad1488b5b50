"""The dashboard and the alerts ask for metrics that there are, by labels that they have."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.parser import text_string_to_metric_families

from engram.composition.container import Application
from engram.telemetry import metrics

ROOT = Path(__file__).resolve().parents[2]
NAME = re.compile(r"\bengram_\w+")
BY_LABELS = re.compile(r"by \(([^)]*)\)")
SELECTED = re.compile(r"(engram_\w+)\{([^}]*)\}")
ADDED = {"le", "instance"}


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load((ROOT / "deploy/prometheus-alerts.yml").read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def expressions() -> list[str]:
    board = json.loads((ROOT / "deploy/grafana-dashboard.json").read_text(encoding="utf-8"))
    return [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())] + [
        rule["expr"] for rule in alerts()
    ]


@pytest.fixture(scope="module")
def known(application: Application) -> dict[str, set[str]]:
    """Metric -> its labels; those of histograms by the names of their samples."""
    found: dict[str, set[str]] = {}
    for metric in vars(metrics).values():
        if isinstance(metric, MetricWrapperBase):
            labels = set(metric._labelnames)  # noqa: SLF001 - without samples nothing else tells them
            for family in metric.describe():
                found |= {family.name + suffix: labels for suffix in SUFFIXES[family.type]}
    for family in text_string_to_metric_families(
        metrics.exposition(application.maintenance.state.metrics).decode()
    ):
        for sample in family.samples:
            for name in (family.name, sample.name):
                found.setdefault(name, set()).update(sample.labels)
    return found | {"engram_jobs": {"kind", "status"}} | {key: {"table"} for key in INDEXES}


SUFFIXES = {"gauge": ("",), "counter": ("", "_total"), "histogram": ("", "_bucket", "_count", "_sum")}
"""Of the names of samples, by the kind of metric."""
INDEXES = ("engram_indexes", "engram_indexes_invalid", "engram_index_bytes")
"""Of which there are none while no collection is large."""


PROMISED = {
    "requests": {"engram_requests_total", "engram_request_seconds", "engram_requests_refused_total"},
    "latencies by stage": {"engram_stage_seconds"},
    "hops": {"engram_query_hops"},
    "stop reasons": {"engram_queries_total"},
    "gains": {"engram_gain"},
    "perplexities": {"engram_perplexity"},
    "how far judges agree": {"engram_verdicts_total", "engram_judge_weight"},  # "contested" beside "applied"
    "the backlog's age": {"engram_backlog_seconds", "engram_verdicts_pending"},
    "jobs": {"engram_jobs", "engram_job_seconds", "engram_jobs_ended_total"},
    "what is parked": {"engram_verdicts_parked"},
    "pools": {"engram_pool_in_use", "engram_pool_size"},
    "indexes": {"engram_index_dead_share", "engram_indexes_invalid", "engram_index_bytes"},
    "language models": {"engram_llm_calls_total", "engram_llm_seconds", "engram_llm_tokens_total"},
}


@pytest.mark.parametrize("what", PROMISED)
def test_documented_metrics_exist(known: dict[str, set[str]], what: str) -> None:
    assert PROMISED[what] <= known.keys()


@pytest.mark.parametrize("expression", expressions())
def test_dashboard_queries_use_existing_metrics_and_labels(known: dict[str, set[str]], expression: str) -> None:
    asked = NAME.findall(expression)
    assert asked
    assert set(asked) <= set(known)
    labels = set().union(*(known[name] for name in asked)) | ADDED
    assert {label.strip() for by in BY_LABELS.findall(expression) for label in by.split(",")} <= labels
    for name, selected in SELECTED.findall(expression):
        assert {part.split("=")[0].strip("~!") for part in selected.split(",")} <= known[name], name


def test_alerts_say_what_is_wrong() -> None:
    for rule in alerts():
        assert rule["annotations"]["summary"], rule
        assert rule["labels"]["severity"] in {"info", "warning", "critical"}


def test_brackets_close() -> None:
    for expression in expressions():
        for opening, closing in ("()", "[]", "{}"):
            assert expression.count(opening) == expression.count(closing), expression
