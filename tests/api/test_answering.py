"""Questions that a process answers at once, and what goes on beside those that wait for their turn."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from engram.composition.container import Application
from engram.runtime.api_process import create_app
from engram.services.question.query import Query
from tests.api.conftest import Variant
from tests.support.live_server import LiveServer

MOST_ANSWERS = 2
QUESTION = "Where was Marie Curie born?"


class HeldQueries:
    """Questions that are answered once they are let go."""

    def __init__(self, answer: Callable[[Query], Any]) -> None:
        self._answer = answer
        self.go = threading.Event()
        self.begun = threading.Semaphore(0)
        self.running = 0
        self.most = 0
        self._lock = threading.Lock()

    def __call__(self, query: Query) -> Any:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.begun.release()
        try:
            assert self.go.wait(20)
            return self._answer(query)
        finally:
            with self._lock:
                self.running -= 1


@pytest.fixture
def bound() -> int:
    """Most questions that the API answers at once."""
    return MOST_ANSWERS


@pytest.fixture
def bounded(variant: Variant, bound: int) -> Application:
    return variant(max_concurrent_queries=bound)


@pytest.fixture
def held(bounded: Application, monkeypatch: pytest.MonkeyPatch) -> Iterator[HeldQueries]:
    queries = HeldQueries(bounded.answers.question.serve)
    monkeypatch.setattr(bounded.answers.question, "serve", queries)
    yield queries
    queries.go.set()


@pytest.fixture
def base(bounded: Application) -> Iterator[str]:
    """An API that answers ``bound`` questions at once."""
    with LiveServer(create_app(bounded)) as server:
        yield server.url


@pytest.fixture
def asking(base: str, curie: str) -> Iterator[Callable[..., "Future[httpx.Response]"]]:
    """Asks, without waiting for the answer."""
    with ThreadPoolExecutor(60) as pool, httpx.Client(base_url=base, timeout=30, verify=False) as client:

        def ask(route: str = "/query", **more: Any) -> "Future[httpx.Response]":
            body = {"query": QUESTION, "collection": curie} | more
            sent = {"queries": [body]} if route == "/queries:batch" else body
            return pool.submit(client.post, route, json=sent)

        yield ask


def test_no_more_are_answered_at_once_and_the_others_wait(
    held: HeldQueries, asking: Callable[..., "Future[httpx.Response]"]
) -> None:
    answers = [asking(route) for route in ("/query", "/queries:batch") * 3]
    for _ in range(MOST_ANSWERS):
        assert held.begun.acquire(timeout=10)
    assert not held.begun.acquire(timeout=0.3)
    held.go.set()
    assert [answer.result().status_code for answer in answers] == [200] * 6
    assert held.most == MOST_ANSWERS


def test_other_requests_do_not_wait_for_queries(
    held: HeldQueries, base: str, curie: str, asking: Callable[..., "Future[httpx.Response]"]
) -> None:
    """More questions wait than there are threads for all else."""
    answers = [asking() for _ in range(MOST_ANSWERS + 50)]
    assert held.begun.acquire(timeout=10)
    with httpx.Client(base_url=base, timeout=10, verify=False) as client:
        assert client.get("/healthz").status_code == 200
        assert client.get(f"/collections/{curie}").status_code == 200
        assert client.post("/nowhere", json={"query": QUESTION}).status_code == 404
    held.go.set()
    assert {answer.result().status_code for answer in answers} == {200}


@pytest.mark.parametrize("route", ["/query", "/queries:batch"])
def test_llm_questions_do_not_occupy_query_slots(
    route: str, held: HeldQueries, asking: Callable[..., "Future[httpx.Response]"]
) -> None:
    """It waits for that most of its time; here none is configured, which it is told after as long."""
    turns = [asking() for _ in range(MOST_ANSWERS)]
    waiting = [asking(route, stop_rule="llm") for _ in range(MOST_ANSWERS)]
    for _ in range(2 * MOST_ANSWERS):
        assert held.begun.acquire(timeout=10)
    held.go.set()
    assert {answer.result().status_code for answer in turns} == {200}
    told = [answer.result() for answer in waiting]
    if route == "/query":
        assert {answer.json()["type"] for answer in told} == {"urn:engram:problem:llm-not-configured"}
    else:
        assert {answer.json()["answers"][0]["problem"]["type"] for answer in told} == {
            "urn:engram:problem:llm-not-configured"
        }


@pytest.mark.parametrize("bound", [0])
def test_any_number_where_there_is_no_bound(bounded: Application, held: HeldQueries, curie: str) -> None:
    body = {"query": QUESTION, "collection": curie}
    with (
        LiveServer(create_app(bounded)) as server,
        httpx.Client(base_url=server.url, timeout=30, verify=False) as client,
        ThreadPoolExecutor(10) as pool,
    ):
        answers = [pool.submit(client.post, "/query", json=body) for _ in range(10)]
        for _ in range(10):
            assert held.begun.acquire(timeout=10)
        held.go.set()
        assert {answer.result().status_code for answer in answers} == {200}
