"""A question takes bounded time, and none for a client that has left."""

import asyncio
import threading
from contextvars import copy_context
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from starlette.types import Message

from engram.composition.container import Application
from engram.context import deadline
from engram.context.errors import AbandonedError
from engram.providers.embedder import token_windows
from engram.providers.embedder.model_folder import DEFAULT_MODEL, open_model
from engram.runtime.api_process import create_app
from engram.services.encoders.encoder import EXPANSION_SHARE, QUESTION_TOKENS
from tests.api.conftest import Variant
from tests.api.operations import BODIES, assert_problem
from tests.support.strict_client import TestClient

DOTS = "." * 10_000
"""A token each, and a window for each 192 of them."""


@pytest.mark.parametrize(
    "path", [path for path in ("/query", "/query/compare", "/answer", "/expand", "/sessions") if path in BODIES]
)
def test_a_question_of_too_many_tokens_names_the_bound(path: str, variant: Variant, curie: str) -> None:
    client = TestClient(create_app(variant(llm_base_url="http://127.0.0.1:1/v1")))
    body: dict[str, Any] = {"collection": curie, "question" if path == "/sessions" else "query": DOTS}
    if path == "/expand":
        body["methods"] = ["prf"]
    if path == "/query/compare":
        body |= {"a": {"memory": "off"}, "b": {"memory": "read"}}
    answer = client.post(path, json=body)
    assert answer.status_code == 422
    assert "ENGRAM_QUESTION_TOKENS" in answer.json()["detail"]
    assert answer.json()["limit"] == QUESTION_TOKENS
    assert_problem(answer)


def test_long_words_are_no_tokens(http: TestClient, curie: str) -> None:
    answer = http.post("/query", json={"collection": curie, "query": "Where was Marie Curie born? " + "a" * 9_000})
    assert answer.status_code == 200


@pytest.mark.parametrize("path", ["/query", "/feedback"])
def test_expansions_are_bounded_together(path: str, http: TestClient, curie: str) -> None:
    asked = http.post("/query", json={"collection": curie, "query": "Where was Marie Curie born?"}).json()
    expansions = [{"method": "mine", "text": "." * 300}] * (EXPANSION_SHARE * QUESTION_TOKENS // 300 + 1)
    named = {"query": "Where?"} if path == "/query" else {"query_id": asked["query_id"], "none_helped": True}
    answer = http.post(
        path,
        json={"collection": curie, "expansions": expansions} | named,
        headers={"idempotency-key": "many"} if path == "/feedback" else {},
    )
    assert answer.status_code == 422
    assert "expansions have together" in answer.json()["detail"]


class CountedBatches:
    """A runtime whose vectors mean nothing."""

    def __init__(self) -> None:
        self.batches = 0
        self.encoder = token_windows.WindowedEmbedder(open_model(DEFAULT_MODEL), self, batch_size=8)

    def __call__(self, token_ids: NDArray[np.int64], attention_mask: NDArray[np.int64]) -> NDArray[np.float32]:
        self.batches += 1
        return np.ones((len(token_ids), 4), dtype=np.float32)


def test_the_encoder_stops_between_batches_once_the_client_left() -> None:
    """The first batch is read, and nothing after it."""
    runtime = CountedBatches()
    before = runtime.batches

    def embed_until_abandoned() -> None:
        deadline.watch_client(lambda: runtime.batches > before)
        with pytest.raises(AbandonedError):
            runtime.encoder.embed([DOTS])

    copy_context().run(embed_until_abandoned)
    assert runtime.batches == before + 1


def test_a_very_long_text_is_read_in_so_many_windows() -> None:
    _, counts, _ = CountedBatches().encoder.embed_windows(["a-" * 20_000])
    assert len(counts) == token_windows.MAX_WINDOWS


@pytest.mark.parametrize(
    ("spans", "most", "chosen"), [(3, 5, [0, 1, 2]), (9, 3, [0, 4, 8]), (5, 5, [0, 1, 2, 3, 4])]
)
def test_windows_are_sampled_evenly(spans: int, most: int, chosen: list[int]) -> None:
    assert token_windows.sample_spans([(at, at + 1) for at in range(spans)], most) == [
        (at, at + 1) for at in chosen
    ]


def test_a_query_is_given_up_when_its_client_leaves(application: Application, curie: str) -> None:
    """By the protocol of ASGI: after the body comes the word that the client has gone."""
    app = create_app(application)
    left = threading.Event()
    encoder = application.models.embedder
    embed = encoder.embed
    sent: list[Message] = []

    def embed_slowly(texts: Any) -> Any:
        assert left.wait(30)
        deadline.check_work()
        return embed(texts)

    async def run() -> None:
        body = b'{"collection": "%s", "query": "Where was Marie Curie born then?"}' % curie.encode()
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            if messages:
                return messages.pop()
            await asyncio.sleep(0.2)
            asyncio.get_running_loop().call_later(0.1, left.set)
            return {"type": "http.disconnect"}

        async def send(message: Message) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "path": "/query",
            "raw_path": b"/query",
            "query_string": b"",
            "headers": [
                (b"host", b"testserver"),
                (b"content-type", b"application/json"),
                (b"content-length", b"%d" % len(body)),
            ],
            "client": ("127.0.0.1", 1),
            "server": ("testserver", 80),
            "scheme": "http",
        }
        await asyncio.wait_for(app(scope, receive, send), 60)

    application.models.embedder.embed = embed_slowly  # type: ignore[method-assign]
    try:
        asyncio.run(run())
    finally:
        application.models.embedder.embed = embed  # type: ignore[method-assign]
    assert sent[0]["status"] == AbandonedError.status
