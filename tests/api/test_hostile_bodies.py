"""Bodies made to keep the service busy: refused soon, while others are answered."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from engram.api import body_reading
from engram.api.schemas import MAX_JSON_BYTES, MAX_VALUES
from engram.api.value_counts import has_more_values
from engram.composition.container import Application
from engram.runtime.api_process import create_app
from tests.api.operations import BODIES
from tests.support.live_server import LiveServer
from tests.support.strict_client import TestClient

NDJSON = {"content-type": "application/x-ndjson"}
QUESTION = {"query": "Where was Marie Curie born?"}
PATIENCE_SECONDS = 3.0
"""How late liveness may be told while the service is under attack."""
ROUNDS = 3
"""Of an attack, at most: in one of them the machine has nothing else to do that takes as long."""


@pytest.fixture(scope="module")
def live(application: Application) -> Iterator[LiveServer]:
    with LiveServer(create_app(application)) as server:
        yield server


def attack_and_assert_alive(live: LiveServer, attack: Callable[[], Any], at_once: int) -> list[Any]:
    """What the attacks came to; liveness was told in time all along."""
    longest = []
    for _ in range(ROUNDS):
        results, waited = run_attack(live, attack, at_once)
        if waited < PATIENCE_SECONDS:
            return results
        longest.append(waited)
    raise AssertionError(f"liveness was told after {longest} s")


def run_attack(live: LiveServer, attack: Callable[[], Any], at_once: int) -> tuple[list[Any], float]:
    """What the attacks came to, and the longest that it took to be told of liveness meanwhile."""
    over = threading.Event()
    waits: list[float] = []

    def watch() -> None:
        while not over.is_set():
            began = time.monotonic()
            assert httpx.get(f"{live.url}/healthz", timeout=60, trust_env=False).status_code == 200
            waits.append(time.monotonic() - began)
            over.wait(0.05)

    with ThreadPoolExecutor(at_once + 1) as pool:
        watching = pool.submit(watch)
        try:
            results = [one.result() for one in [pool.submit(attack) for _ in range(at_once)]]
        finally:
            over.set()
        watching.result()
    return results, max(waits)


def test_huge_filter_does_not_block_other_requests(live: LiveServer) -> None:
    body = json.dumps(QUESTION | {"filter": {"a": [0] * 1_300_000}}).encode()
    headers = {"content-type": "application/json"}

    def attack() -> httpx.Response:
        return httpx.post(f"{live.url}/query", content=body, headers=headers, timeout=60, trust_env=False)

    for answer in attack_and_assert_alive(live, attack, 8):
        assert answer.status_code == 422
        assert answer.json()["type"] == "urn:engram:problem:invalid-request"
        assert f"{body_reading.MAX_VALUES} values" in answer.json()["detail"]


def test_blank_lines_do_not_block_other_requests(live: LiveServer, collection: str) -> None:
    def blanks() -> Iterator[bytes]:
        for _ in range(200):
            yield b"\n" * 65_536

    def attack() -> httpx.Response:
        url = f"{live.url}/passages?collection={collection}"
        return httpx.post(url, content=blanks(), headers=NDJSON, timeout=60, trust_env=False)

    for answer in attack_and_assert_alive(live, attack, 4):
        assert (answer.status_code, answer.json()["detail"]) == (422, "The body holds no line.")


WIDE: list[tuple[Any, str]] = [
    ({"a": [0] * MAX_VALUES}, "values"),
    ({"a": [[0] * 30] * 40}, "values"),
    ({"a": {str(at): {} for at in range(MAX_VALUES)}}, "values"),
    ({"a": "x" * MAX_JSON_BYTES}, "bytes"),
    ({"é" * (MAX_JSON_BYTES // 2): 1}, "bytes"),
    ({"a": json.loads("[" * 30 + "]" * 30)}, "nested"),
]


@pytest.mark.routes
@pytest.mark.parametrize(("value", "said"), WIDE, ids=range(len(WIDE)))
def test_metadata_and_filters_are_bounded(value: Any, said: str, http: TestClient, collection: str) -> None:
    passage = {"id": "p", "text": "Warsaw lies on the Vistula.", "metadata": value}
    for path, body in (
        ("/query", QUESTION | {"filter": value}),
        *([("/query/compare", QUESTION | {"filter": value})] if "/query/compare" in BODIES else []),
        ("/answer", QUESTION | {"filter": value}),
        (f"/passages?collection={collection}", {"passages": [passage]}),
    ):
        answer = http.post(path, json=body)
        assert answer.status_code == 422, (path, answer.text)
        assert said in answer.json()["detail"]
    accepted = http.post(
        f"/passages?collection={collection}", content=json.dumps(passage).encode() + b"\n{}", headers=NDJSON
    ).json()
    errors = http.get(accepted["status_url"], params={"collection": collection}).json()["errors"]
    assert [error["line"] for error in errors] == [1, 2]
    assert said in errors[0]["reason"]


def test_largest_allowed_bodies_are_accepted(http: TestClient, curie: str) -> None:
    asked = QUESTION | {"collection": curie, "filter": {"a": [0] * (MAX_VALUES - 2)}}
    answer = http.post("/query", json=asked)
    assert (answer.status_code, answer.json()["passages"]) == (200, [])
    sentences = [f"Sentence {at} says nothing." for at in range(MAX_VALUES)]
    passage = {"_id": "p", "text": "Nothing.", "metadata": {"sentences": sentences}}
    assert http.post(f"/passages?collection={curie}", json={"passages": [passage]}).status_code == 202


def test_counting_ends_where_it_is_enough() -> None:
    class CountedList(list[Any]):
        looked_at = 0

        def __iter__(self) -> Iterator[Any]:
            CountedList.looked_at += 1
            return super().__iter__()

    value = [CountedList([0] * 10) for _ in range(1_000)]
    assert has_more_values(value, 500)
    assert not CountedList.looked_at
    assert not has_more_values([[1], {"a": {"b": 2}}], 6)
    assert has_more_values([[1], {"a": {"b": 2}}], 5)


def test_liveness_takes_no_thread(live: LiveServer) -> None:
    """However many requests wait in threads: here all threads that there are do."""
    freed = threading.Event()
    limiter: list[Any] = []

    async def occupy() -> None:
        from anyio import create_task_group, to_thread

        limit = to_thread.current_default_thread_limiter()
        limiter.append(limit)
        async with create_task_group() as group:
            for _ in range(int(limit.total_tokens)):
                group.start_soon(to_thread.run_sync, freed.wait)

    app: Any = live.app
    app.add_api_route("/occupy", occupy, methods=["GET"])
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(httpx.get, f"{live.url}/occupy", timeout=60, trust_env=False)
        try:
            while not limiter or limiter[0].available_tokens:
                time.sleep(0.01)
            assert httpx.get(f"{live.url}/healthz", timeout=10, trust_env=False).status_code == 200
        finally:
            freed.set()
        assert held.result().status_code == 200


def test_possessives_without_end(http: TestClient, curie: str) -> None:
    """They were taken off one at a time, which took longer than a query may."""
    body = {"query": "x" + "'s" * 255, "collection": curie}
    assert http.post("/query", json=body).status_code == 200  # 511 tokens
    body = {"query": "x" + "'s" * 4_000, "collection": curie}
    response = http.post("/query", json=body)
    assert response.status_code == 422
    assert response.json()["limit"] == 512


@pytest.mark.wing("sessions")
def test_marks_of_ours_are_words_like_any(http: TestClient, curie: str) -> None:
    body = {"question": "Who is the mother of ⟦1⟧?", "collection": curie, "wait": True}
    assert http.post("/sessions", json=body).json()["stop_reason"] in {"found", "no_gap", "not_found"}
