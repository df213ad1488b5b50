"""Limits: how often each may ask, how much at once, and how long a queue may be."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import closing
from typing import Any
from uuid import uuid4

import httpx
import pytest
import redis
from fastapi import FastAPI, Request
from starlette.types import ASGIApp, Receive, Scope, Send

from engram.api import problems
from engram.api.authentication_middleware import PRINCIPAL
from engram.api.client_address import client_address
from engram.api.refusals import Refusals
from engram.api.throttle import Bounds, Throttle
from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.runtime.api_process import create_app
from engram.services.auth.rate_limits import Rates
from engram.services.auth.scope import Principal
from engram.storage.rate_buckets import Buckets
from tests.conftest import UNREACHABLE_SERVERS

NO_BOUNDS = Bounds(0, 0, 0, 1.0)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class NamedPrincipals:
    """Makes each request that of the principal that its header names, as access control does."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            name = dict(scope["headers"]).get(b"name")
            if name is not None:
                scope[PRINCIPAL] = Principal(name.decode(), "tenant")
        await self._app(scope, receive, send)


class SlowApplication:
    """An application that takes its time, within limits."""

    def __init__(self, bounds: Bounds, rates: Rates | None = None, held_seconds: float = 0.0) -> None:
        """``held_seconds``: for how long one 429 is held back."""
        self.running = 0
        self.most = 0
        self.go = asyncio.Event()
        app = FastAPI()

        @app.api_route("/work", methods=["GET", "POST"])
        @app.post("/passages")
        async def work(request: Request) -> int:
            await request.body()
            self.running += 1
            self.most = max(self.most, self.running)
            await self.go.wait()
            self.running -= 1
            return 1

        @app.get("/healthz")
        async def healthz() -> int:
            return 1

        problems.install(app)
        app.add_middleware(Throttle, bounds=bounds, rates=rates, refusals=Refusals(1, held_seconds))
        app.add_middleware(NamedPrincipals)
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x")

    async def begun(self, count: int, **request: Any) -> "list[asyncio.Task[httpx.Response]]":
        """So many requests, on their way as far as they come."""
        request = {"method": "GET", "url": "/work"} | request
        tasks = [asyncio.create_task(self.http.request(**request)) for _ in range(count)]
        await asyncio.sleep(0.05)
        return tasks


@pytest.fixture
def rates(addresses: Servers, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rates]:
    monkeypatch.setattr("engram.storage.rate_buckets.TIMEOUT_SECONDS", 10.0)  # a busy machine is no lost Redis
    buckets = Buckets(addresses.redis_url)
    yield Rates(buckets, 0.5, 3)
    buckets.close()


def build_headers() -> dict[str, str]:
    return {"name": uuid4().hex}


async def _send(rates: Rates, headers: Mapping[str, str], times: int) -> list[httpx.Response]:
    served = SlowApplication(NO_BOUNDS, rates)
    served.go.set()
    return [await served.http.get("/work", headers=dict(headers)) for _ in range(times)]


def test_rate_limited_request_is_429_with_retry_after(rates: Rates) -> None:
    *through, refused = asyncio.run(_send(rates, build_headers(), 4))
    assert [answer.status_code for answer in through] == [200, 200, 200]
    assert through[0].headers["ratelimit-policy"] == '"requests";q=3;w=6'
    assert through[0].headers["ratelimit"] == '"requests";r=2;t=2'
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "2"
    assert refused.headers["ratelimit"].startswith('"requests";r=0;')
    assert refused.headers["content-type"] == problems.MEDIA_TYPE
    assert refused.json()["type"] == "urn:engram:problem:too-many-requests"


def test_counts_of_a_client_go_once_its_bucket_is_full_again(rates: Rates, addresses: Servers) -> None:
    headers = build_headers()
    asyncio.run(_send(rates, headers, 1))
    with closing(redis.Redis.from_url(addresses.redis_url)) as counts:
        [key] = counts.scan_iter(f"engram:bucket:*{headers['name']}*")
        assert 0 < counts.ttl(key) <= 7


def test_rate_limits_are_separate_by_client(rates: Rates) -> None:
    assert asyncio.run(_send(rates, build_headers(), 4))[-1].status_code == 429
    assert asyncio.run(_send(rates, build_headers(), 1))[-1].status_code == 200


def test_processes_count_together(rates: Rates, addresses: Servers) -> None:
    other, headers = Rates(Buckets(addresses.redis_url), 0.5, 3), build_headers()
    assert asyncio.run(_send(rates, headers, 3))[-1].status_code == 200
    assert asyncio.run(_send(other, headers, 1))[-1].status_code == 429


def test_redis_and_local_rate_limits_agree(rates: Rates) -> None:
    name = uuid4().hex
    there = [rates.take(name, count) for count in (1, 3, 2, 1)]
    alone = Rates(Buckets("redis://127.0.0.1:1/0"), rates.rate, rates.burst)
    here = [alone.take(name, count) for count in (1, 3, 2, 1)]
    assert [(taken.allowed, taken.remaining) for taken in there] == [
        (taken.allowed, taken.remaining) for taken in here
    ]
    # Meanwhile a little has come back.
    assert here[3].retry_seconds == pytest.approx(there[3].retry_seconds, abs=1.5)


def test_without_redis_each_process_counts_alone_and_soon_asks_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    take = Buckets.take

    def take_and_record(self: Buckets, name: str, *limits: Any) -> tuple[float, bool] | None:
        asked.append(name)
        return take(self, name, *limits)

    monkeypatch.setattr(Buckets, "take", take_and_record)
    monkeypatch.setattr("engram.services.auth.rate_limits.AWAY_SECONDS", 600.0)  # longer than a slow machine takes
    rates = Rates(Buckets("redis://127.0.0.1:1/0"), 0.5, 3)
    answers = asyncio.run(_send(rates, build_headers(), 4))
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    rates.take("somebody")
    assert len(asked) == 1


@pytest.mark.anyio
async def test_requests_in_hand_are_limited_by_client() -> None:
    served = SlowApplication(Bounds(2, 0, 0, 1.0))
    mine = await served.begun(3, headers={"name": "a"})
    others = await served.begun(1, headers={"name": "b"})
    assert mine[2].done()
    assert mine[2].result().status_code == 429
    assert mine[2].result().headers["retry-after"] == "2"
    served.go.set()
    assert [(await task).status_code for task in (*mine[:2], *others)] == [200] * 3
    assert (await served.http.get("/work", headers={"name": "a"})).status_code == 200


@pytest.mark.anyio
async def test_a_held_refusal_is_not_in_hand(rates: Rates) -> None:
    served, headers = SlowApplication(Bounds(1, 0, 0, 1.0), rates, held_seconds=600.0), build_headers()
    served.go.set()
    for _ in range(3):
        await served.http.get("/work", headers=headers)
    (held,) = await served.begun(1, headers=headers)
    assert not held.done()
    refused = await served.http.get("/work", headers=headers)
    assert refused.json()["detail"] == "At most 0.5 requests a second are answered."
    held.cancel()


@pytest.mark.anyio
async def test_the_queue_has_an_end() -> None:
    served = SlowApplication(Bounds(0, 2, 3, 5.0))
    tasks = await served.begun(6)
    assert served.running == 2
    (refused,) = [task for task in tasks if task.done()]
    assert refused.result().status_code == 503
    assert refused.result().headers["retry-after"] == "2"
    assert (await served.http.get("/healthz")).status_code == 200
    served.go.set()
    assert [(await task).status_code for task in tasks if task is not refused] == [200] * 5
    assert served.most == 2


@pytest.mark.anyio
@pytest.mark.parametrize("request_", [{}, {"method": "POST", "content": b"{}"}])
async def test_queued_request_times_out_with_503(request_: dict[str, Any]) -> None:
    served = SlowApplication(Bounds(0, 1, 5, 0.1))
    first, second = await served.begun(2, **request_)
    assert (await second).status_code == 503
    served.go.set()
    assert (await first).status_code == 200
    assert (await served.http.get("/work")).status_code == 200, "its slot is free again"


@pytest.mark.anyio
async def test_departed_client_leaves_the_queue() -> None:
    served = SlowApplication(Bounds(0, 1, 1, 5.0))
    first, second = await served.begun(2)
    second.cancel()
    await asyncio.sleep(0.01)
    third, fourth = await served.begun(2)
    assert (fourth.done(), third.done()) == (True, False)
    served.go.set()
    assert [(await first).status_code, (await third).status_code] == [200, 200]


@pytest.mark.anyio
async def test_slow_upload_does_not_occupy_a_slot() -> None:
    served = SlowApplication(Bounds(0, 1, 0, 0.1))
    end = asyncio.Event()

    async def send_slowly() -> AsyncIterator[bytes]:
        yield b"{"
        await end.wait()
        yield b"}"

    (slowly,) = await served.begun(1, method="POST", content=send_slowly())
    served.go.set()
    assert (await served.http.post("/work", content=b"{}")).status_code == 200
    end.set()
    assert (await slowly).status_code == 200


@pytest.mark.anyio
async def test_streamed_passages_take_no_slot() -> None:
    served = SlowApplication(Bounds(0, 1, 0, 0.1))
    streaming = await served.begun(3, method="POST", url="/passages", content=b"{}")
    assert served.running == 3
    served.go.set()
    assert [(await task).status_code for task in streaming] == [200] * 3


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("testclient", "testclient"),
    ],
)
def test_a_client_is_an_address_or_a_customers_network(host: str, name: str) -> None:
    assert client_address({"client": (host, 1)}) == name


def test_rate_limit_defaults_apply_off_loopback_only(application: Application, settings: Settings) -> None:
    def build_rates(**changed: Any) -> Rates | None:
        with closing(Application(settings.model_copy(update=changed), UNREACHABLE_SERVERS)) as apart:
            return apart.auth.rates

    assert build_rates() is None
    assert build_rates(host="192.0.2.1", rate_per_second=0) is None
    elsewhere = build_rates(host="192.0.2.1")
    assert elsewhere is not None
    assert elsewhere.rate == 20


def test_every_route_but_those_that_are_free_says_that_it_may_refuse() -> None:
    for path, operations in create_app(None).openapi()["paths"].items():
        for operation in operations.values():
            assert ("429" in operation["responses"]) == (path not in {"/healthz", "/readyz"}), path
