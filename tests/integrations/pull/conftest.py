"""The real API, of which `POST /feedback` is recorded: pulls are tested by the requests that they send."""

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engram.composition.container import Application
from engram.config.settings import Settings
from engram.runtime.api_process import create_app
from engram.services.question.query import Query
from tests.support.command import Cli
from tests.support.live_server import LiveServer

Ask = Callable[[str], str]


class RatingRecorder:
    """An ASGI application before another one: it answers `POST /feedback` itself, and repeats answers by key."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.clear()

    def clear(self) -> None:
        """Forget all requests."""
        self._by_key: dict[str, dict[str, Any]] = {}
        self.ratings: list[dict[str, Any]] = []
        self.posts = 0
        self.refusals: list[int] = []
        """Statuses of the next answers."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or (scope["method"], scope["path"]) != ("POST", "/feedback"):
            await self._app(scope, receive, send)
            return
        content = b""
        while True:
            message = await receive()
            content += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        status, answer = self._take(json.loads(content), headers["idempotency-key"])
        await send(
            {"type": "http.response.start", "status": status, "headers": [(b"content-type", b"application/json")]}
        )
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    def _take(self, body: dict[str, Any], key: str) -> tuple[int, dict[str, Any]]:
        self.posts += 1
        assert body.pop("wait") is False
        if self.refusals:
            status = self.refusals.pop(0)
            return status, {"title": "Refused", "detail": f"status {status}"}
        if key in self._by_key:
            assert self._by_key[key] == body, "one key for two bodies"
        else:
            self._by_key[key] = body
            self.ratings.append(body)
        answer = {"feedback_id": 1, "received_at": "2026-11-20T00:00:00Z", "status": "pending"}
        unknown = dict.fromkeys(("applied_at", "changes", "effect", "error", "keys", "revoked_at"))
        return 202, answer | unknown | {name: body[name] for name in ("collection", "judge", "query_id")}

    def current(self) -> dict[tuple[str, str], str]:
        """(judge, query) -> the rating that counts, as the service has it: the latest, none once it is revoked."""
        counted: dict[tuple[str, str], str] = {}
        for body in self.ratings:
            pair = (body["judge"], body["query_id"])
            if body["rating"] is None:
                counted.pop(pair, None)
            else:
                counted[pair] = body["rating"]
        return counted


@pytest.fixture(scope="module")
def recording_server(application: Application) -> Iterator[tuple[RatingRecorder, str]]:
    made = RatingRecorder(create_app(application))
    with LiveServer(made) as server:
        yield made, server.url


@pytest.fixture
def recorder(recording_server: tuple[RatingRecorder, str]) -> tuple[RatingRecorder, str]:
    recording_server[0].clear()
    return recording_server


@pytest.fixture
def ratings(recorder: tuple[RatingRecorder, str]) -> RatingRecorder:
    return recorder[0]


@pytest.fixture
def pulling(tmp_path: Path, recorder: tuple[RatingRecorder, str], settings: Settings) -> Cli:
    """The command, talking to the recorded API; it waits little between its tries."""
    waits = {"engram_pull.product_http:FIRST_WAIT_SECONDS": 0.01, "engram_client._core:FIRST_WAIT_SECONDS": 0.01}
    return Cli(tmp_path, recorder[1], settings.data_dir, waits, module="engram_pull")


@pytest.fixture
def ask(application: Application, curie: str) -> Ask:
    """Ask a question in a trace; the query's id."""

    def ask_with_trace(trace_id: str) -> str:
        scope = application.auth.access.scope(curie)
        query = Query(text="Where was Marie Curie born?", scope=scope, trace_id=trace_id)
        return str(application.answers.question.answer(query).query_id)

    return ask_with_trace


@pytest.fixture
def trace() -> str:
    """A trace id that no other test has."""
    return uuid.uuid4().hex
