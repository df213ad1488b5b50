"""Metrics, request ids and traces: what is told, and what is not."""

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from engram.composition.container import Application
from engram.config.settings import Settings
from engram.context.errors import ConfigurationError
from engram.runtime.api_process import create_app
from engram.telemetry import metrics, stages, tracing
from engram.telemetry.metrics_endpoint import MetricsEndpoint
from tests.api.conftest import Variant
from tests.support.forks import ROOT
from tests.support.state import add_episode, judge, sentences
from tests.support.strict_client import TestClient

QUESTION = "Into which sea flows the river of Marie Curie's birthplace?"
SECRETIVE = "Kaleidoscopic-wombat"

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def series(page: str) -> Series:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def read_metrics(http: TestClient) -> Series:
    return series(http.get("/metrics").raise_for_status().text)


def value(of: Series, name: str, **labels: str) -> float:
    return sum(number for (found, at), number in of.items() if found == name and labels.items() <= dict(at).items())


def post_query(http: TestClient, collection: str, query: str = QUESTION, **headers: str) -> httpx.Response:
    return http.post("/query", json={"query": query, "collection": collection}, headers=headers)


def test_query_is_measured_by_stage(http: TestClient, curie: str) -> None:
    before = read_metrics(http)
    answer = post_query(http, curie).raise_for_status().json()
    after = read_metrics(http)

    def count_increase(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    assert count_increase("engram_requests_total", route="/query", method="POST", status="200") == 1
    assert count_increase("engram_request_seconds_count", route="/query") == 1
    assert count_increase("engram_queries_total", strategy="graph", stop_reason=answer["stop_reason"]) == 1
    assert count_increase("engram_query_hops_sum") == answer["hops"]
    for stage in ("analyse", "embed", "align", "walk", "rank", "read", "keep"):
        assert count_increase("engram_stage_seconds_count", stage=stage) == 1, stage


def test_verdict_is_measured_with_gains_and_perplexities(
    http: TestClient, application: Application, curie: str
) -> None:
    before = read_metrics(http)
    ids = list(sentences(application, curie, "vistula").values())
    query = add_episode(application, curie, QUESTION, ids)
    changes = judge(application, curie, query, ids, wait=True).changes
    judge(application, curie, query, (), rejected=ids, judge="another", wait=True)
    after = read_metrics(http)

    def count_increase(name: str, **labels: str) -> float:
        return value(after, name, **labels) - value(before, name, **labels)

    assert changes
    assert count_increase("engram_verdicts_total", outcome="applied") == 2
    assert count_increase("engram_verdicts_total", outcome="contested") == 1
    assert count_increase("engram_gain_count", channel="recall") == 2 * len(ids)
    assert count_increase("engram_perplexity_sum", channel="recall") > 0
    assert count_increase("engram_verdict_seconds_count") == 2


def test_metrics_include_the_current_state(http: TestClient, curie: str) -> None:
    now = read_metrics(http)
    assert value(now, "engram_postgres_up") == value(now, "engram_redis_up") == 1
    assert value(now, "engram_collections") >= 1
    assert value(now, "engram_database_bytes") > 1e6
    assert ("engram_backlog_seconds", frozenset({("of", "jobs")})) in now
    assert value(now, "engram_pool_size", pool="read") == 10


def test_no_series_comes_of_what_callers_send(http: TestClient, curie: str) -> None:
    post_query(http, curie).raise_for_status()
    post_query(http, curie, f"Who is {SECRETIVE}?").raise_for_status()
    http.get("/collections/first")
    http.get("/nothing/first")
    http.request("BREW", "/query")
    http.get("/metrics")
    before = read_metrics(http)
    for number in range(5):
        name = f"{SECRETIVE}-{number}"
        post_query(http, curie, f"Who is {name}?").raise_for_status()
        post_query(http, name)
        http.get(f"/collections/{name}")
        http.get(f"/nothing/{name}")
        http.request(f"BREW{number}", "/query")
    page = http.get("/metrics").text
    assert set(series(page)) - set(before) <= {
        key for key in series(page) if key[0].startswith("engram_request") and ("status", "404") in key[1]
    }
    assert SECRETIVE not in page
    assert curie not in page


def test_the_callers_request_id_comes_back_everywhere(http: TestClient, capsys: pytest.CaptureFixture[str]) -> None:
    answer = http.get("/collections/no-such-one", headers={"x-request-id": "abc-1:2.3_4"})
    assert answer.headers["x-request-id"] == answer.json()["request_id"] == "abc-1:2.3_4"


@pytest.mark.parametrize("odd", ["", "a b", "a" * 65, "-a", "<script>", "a\x7f"])
def test_an_odd_request_id_is_replaced(http: TestClient, odd: str) -> None:
    given = http.get("/healthz", headers={"x-request-id": odd}).headers["x-request-id"]
    assert given != odd
    assert len(given) == 32
    assert given != http.get("/healthz").headers["x-request-id"]


def test_log_lines_of_a_request_name_it(http: TestClient, curie: str) -> None:
    with structlog.testing.capture_logs([structlog.contextvars.merge_contextvars]) as lines:
        post_query(http, curie, **{"x-request-id": "mine"}).raise_for_status()
        http.get("/healthz")
    assert [line["request_id"] for line in lines if line["event"] == "query"] == ["mine"]
    assert structlog.contextvars.get_contextvars() == {}


def test_requests_refused_before_routing_are_measured(http: TestClient) -> None:
    before = read_metrics(http)
    answer = http.post("/query", headers={"origin": "https://elsewhere.example"}, json={})
    assert answer.status_code == 403
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    assert value(read_metrics(http), "engram_requests_total", status="403", route="none") == 1 + value(
        before, "engram_requests_total", status="403", route="none"
    )


@pytest.mark.parametrize(
    "changed", [{"host": "192.0.2.1", "access": "open"}, {"metrics_port": 9464}, {"metrics_port": 0}]
)
def test_the_api_shows_metrics_to_its_own_machine_only(variant: Variant, changed: dict[str, Any]) -> None:
    with TestClient(create_app(variant(**changed))) as http:
        assert http.get("/metrics").status_code == 404


def test_a_port_of_its_own_shows_metrics_and_nothing_else(application: Application) -> None:
    exposed = MetricsEndpoint("127.0.0.1", 0, application.maintenance.state.metrics)
    try:
        address = f"http://127.0.0.1:{exposed.port}"
        page = httpx.get(f"{address}/metrics", trust_env=False, timeout=60)
        assert page.headers["content-type"] == metrics.CONTENT_TYPE
        assert value(series(page.text), "engram_postgres_up") == 1
        assert httpx.get(f"{address}/query", trust_env=False, timeout=60).status_code == 404
        with pytest.raises(ConfigurationError, match=f"port {exposed.port}"):
            MetricsEndpoint("127.0.0.1", exposed.port)
    finally:
        exposed.close()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{address}/metrics", trust_env=False, timeout=60)


class Receiver:
    """An OTLP receiver over HTTP."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    import gzip

                    body = gzip.decompress(body)
                sent = ExportTraceServiceRequest.FromString(body)
                for resource in sent.resource_spans:
                    for scope in resource.scope_spans:
                        receiver.spans += scope.spans
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    running = Receiver()
    yield running
    running.close()


@contextmanager
def export_traces(receiver: Receiver) -> Iterator[None]:
    stop = tracing.start(receiver.url, "tests", "0")
    try:
        yield
    finally:
        stop()


def test_traces_are_off_until_a_receiver_is_named() -> None:
    assert Settings(_env_file=None).otlp_endpoint is None
    with tracing.span("stage") as span:
        assert span is None


def test_a_query_is_one_trace_with_a_span_a_stage(http: TestClient, curie: str, receiver: Receiver) -> None:
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with export_traces(receiver):
        post_query(http, curie, traceparent=parent).raise_for_status()
    names = [span.name for span in receiver.spans]
    (root,) = [span for span in receiver.spans if span.name == "POST /query"]
    assert sorted(set(names) - {"walk"}) == sorted(
        ["POST /query", "align", "analyse", "embed", "keep", "rank", "read"]
    )
    assert len(names) <= 10, "a span a stage, not one a statement"
    assert root.trace_id.hex() == "0af7651916cd43dd8448eb211c80319c"
    assert root.parent_span_id.hex() == "b7ad6b7169203331"
    assert all(span.parent_span_id == root.span_id for span in receiver.spans if span is not root)


def test_traces_hold_nothing_that_callers_sent(http: TestClient, curie: str, receiver: Receiver) -> None:
    with export_traces(receiver):
        post_query(http, curie, f"Who is {SECRETIVE}?").raise_for_status()
        http.get(f"/collections/{SECRETIVE}")
        with pytest.raises(ValueError, match=SECRETIVE), stages.stage("learn"):
            raise ValueError(SECRETIVE)
    sent = "".join(str(span) for span in receiver.spans)
    assert "ValueError" in sent
    assert SECRETIVE not in sent
    assert curie not in sent


def test_no_span_outlives_its_request(http: TestClient, curie: str, receiver: Receiver) -> None:
    with export_traces(receiver):
        post_query(http, curie).raise_for_status()
        http.get("/collections/no-such-one")
        assert not trace.get_current_span().get_span_context().is_valid
    ended = len(receiver.spans)
    post_query(http, curie).raise_for_status()
    assert len(receiver.spans) == ended, "off again"
    assert all(span.end_time_unix_nano for span in receiver.spans)


def test_a_receiver_that_is_away_costs_no_answer(http: TestClient, curie: str, receiver: Receiver) -> None:
    receiver.close()
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    with export_traces(receiver):
        post_query(http, curie).raise_for_status()


COUNTING = """
import sys
from engram.config.settings import Settings
from engram.telemetry import metrics
metrics.REQUESTS.labels("/query", "POST", "200").inc(int(sys.argv[1]))
metrics.IN_HAND.inc()
sys.stdout.buffer.write(metrics.exposition())
"""


def test_processes_at_one_address_answer_for_each_other(tmp_path: Path) -> None:
    env = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)}
    pages = [
        subprocess.run([sys.executable, "-c", COUNTING, count], env=env, capture_output=True, check=True, text=True)
        for count in ("3", "4")
    ]
    assert value(series(pages[1].stdout), "engram_requests_total", route="/query") == 7
    assert value(series(pages[1].stdout), "engram_requests_in_hand") == 1, "of those that live"
