"""The encoder behind an OpenAI-compatible endpoint, against a real server, with what such servers do wrong."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from engram.context import deadline
from engram.context.errors import (
    ConfigurationError,
    EmbeddingError,
    EmbeddingSpaceMismatchError,
    EmbeddingUnavailableError,
)
from engram.providers.embedder import endpoint_encoder
from engram.providers.embedder.endpoint_encoder import EndpointEmbedder, EndpointSettings, probe_digest
from engram.providers.embedder.prefixes import Prefixes
from tests.support.model_server import Failure, ModelServer

DIMENSION = 24


def vectors_of(texts: Sequence[str], seed: str = "") -> NDArray[np.float32]:
    """Vectors (n, d) that hang on the text alone, of lengths other than 1."""
    rows = []
    for text in texts:
        digest = hashlib.sha256((seed + text).encode()).digest()
        rows.append(np.random.default_rng(int.from_bytes(digest[:8], "big")).normal(size=DIMENSION) * 3)
    return np.array(rows, dtype=np.float32).reshape(-1, DIMENSION)


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(vectors_of) as running:
        yield running


@pytest.fixture
def connect(server: ModelServer) -> Iterator[Callable[..., EndpointEmbedder]]:
    opened: list[EndpointEmbedder] = []

    def make(**changed: Any) -> EndpointEmbedder:
        stated = {"name": "test", "url": server.base_url, "model": "served", "timeout_seconds": 5.0} | changed
        opened.append(EndpointEmbedder(EndpointSettings(**stated), probe_digest))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


def test_vectors_come_at_unit_length_and_in_the_order_of_the_texts(
    server: ModelServer, connect: Callable[..., EndpointEmbedder]
) -> None:
    embedder = connect(batch_size=4)
    texts = [f"text {number}" for number in range(10)]
    assert_allclose(embedder.embed(texts), unit(vectors_of(texts)), atol=1e-6)
    sizes = [len(request.json["input"]) for request in server.requests]
    assert sizes == [6, 4, 4, 2], "the probes, then batches"
    assert {request.json["model"] for request in server.requests} == {"served"}
    assert (embedder.model, embedder.dimension, len(embedder.fingerprint)) == ("test", DIMENSION, 64)
    assert embedder.embed([]).shape == (0, DIMENSION)


def test_questions_and_passages_have_prefixes_of_their_own(connect: Callable[..., EndpointEmbedder]) -> None:
    embedder = connect(prefixes=Prefixes("query: ", "passage: "))
    assert_allclose(embedder.embed(["a"]), unit(vectors_of(["passage: a"])), atol=1e-6)
    assert_allclose(embedder.embed_questions(["a"]), unit(vectors_of(["query: a"])), atol=1e-6)
    assert embedder.fingerprint != connect(prefixes=Prefixes("query: ", "")).model


def test_vectors_are_cut_before_they_are_brought_to_unit_length(connect: Callable[..., EndpointEmbedder]) -> None:
    embedder = connect(dimension=8)
    assert_allclose(embedder.embed(["a", "b"]), unit(vectors_of(["a", "b"])[:, :8]), atol=1e-6)
    assert embedder.dimension == 8
    with pytest.raises(ConfigurationError, match=r"gives 24-dimensional vectors, but the dimension is set to 25\."):
        connect(dimension=25).identify()


def test_the_order_is_that_of_index_and_not_of_the_list(
    server: ModelServer, connect: Callable[..., EndpointEmbedder]
) -> None:
    embedder = connect()
    embedder.identify()
    server.queue(Failure(change=lambda reply: reply | {"data": reply["data"][::-1]}))
    assert_allclose(embedder.embed(["a", "b", "c"]), unit(vectors_of(["a", "b", "c"])), atol=1e-6)


@pytest.mark.parametrize(
    "failures",
    [
        [Failure(status=429, body=b"{}", headers={"Retry-After": "0.01"})],
        [Failure(status=500, body=b"oops"), Failure(status=503, body=b"")],
        [Failure(hang_up=True)],
    ],
    ids=["overloaded", "broken twice", "hung up"],
)
def test_transient_failures_are_retried(
    server: ModelServer, connect: Callable[..., EndpointEmbedder], failures: list[Failure]
) -> None:
    embedder = connect()
    embedder.identify()
    before = len(server.requests)
    server.queue(*failures)
    assert_allclose(embedder.embed(["a"]), unit(vectors_of(["a"])), atol=1e-6)
    assert len(server.requests) == before + len(failures) + 1


def change_first(change: Callable[[dict[str, Any]], Any]) -> Callable[[Any], Any]:
    """The reply with its first item changed."""
    return lambda reply: reply | {"data": [change(reply["data"][0]), *reply["data"][1:]]}


UNUSABLE = {
    "not JSON": (Failure(body=b"<html>"), "not JSON"),
    "NaN": (
        Failure(change=change_first(lambda item: item | {"embedding": [float("nan")] * DIMENSION})),
        "not JSON",
    ),
    "infinite": (
        Failure(change=change_first(lambda item: item | {"embedding": [1e300] * DIMENSION})),
        "not finite",
    ),
    "zero": (Failure(change=change_first(lambda item: item | {"embedding": [0.0] * DIMENSION})), "length 0"),
    "partial": (Failure(change=lambda reply: reply | {"data": reply["data"][:1]}), "1 vectors for 2 texts"),
    "ragged": (Failure(change=change_first(lambda item: item | {"embedding": [1.0]})), "of one length"),
    "words": (Failure(change=change_first(lambda item: item | {"embedding": ["1.0"] * DIMENSION})), "than numbers"),
    "null": (Failure(change=change_first(lambda item: item | {"embedding": None})), "not lists"),
    "one index twice": (Failure(change=change_first(lambda item: item | {"index": 1})), "`index`"),
    "no data": (Failure(body=b'{"embeddings": []}'), "no list `data`"),
    "a list": (Failure(body=b"[]"), "no list `data`"),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_an_unusable_response_is_refused_with_its_reason(
    server: ModelServer, connect: Callable[..., EndpointEmbedder], case: str
) -> None:
    embedder = connect()
    embedder.identify()
    failure, reason = UNUSABLE[case]
    server.queue(failure)
    with pytest.raises(EmbeddingError, match=rf"^The embedding server http.* something unusable: .*{reason}"):
        embedder.embed(["a", "b"])
    assert_allclose(embedder.embed(["a"]), unit(vectors_of(["a"])), atol=1e-6)


def test_another_dimension_is_another_model(server: ModelServer, connect: Callable[..., EndpointEmbedder]) -> None:
    embedder = connect()
    embedder.identify()
    server.vectors = lambda texts: vectors_of(texts)[:, :-1]
    with pytest.raises(EmbeddingSpaceMismatchError, match=r"another model .* gives 23 numbers .* instead of 24"):
        embedder.embed(["a"])


def test_a_changed_model_is_noticed_after_a_failure_and_after_a_while(
    server: ModelServer, connect: Callable[..., EndpointEmbedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = connect(max_attempts=1)
    embedder.embed(["a"])
    server.queue(Failure(status=503, body=b""))
    with pytest.raises(EmbeddingUnavailableError):
        embedder.embed(["a"])
    before = len(server.requests)
    assert embedder.embed(["a"]).shape == (1, DIMENSION), "it is the same model"
    assert len(server.requests[before].json["input"]) == 2, "a probe went along"
    embedder.embed(["a"])
    assert len(server.requests[-1].json["input"]) == 1

    server.vectors = lambda texts: vectors_of(texts, "another")
    monkeypatch.setattr(endpoint_encoder, "PROBE_SECONDS", -1.0)
    with pytest.raises(EmbeddingSpaceMismatchError, match=r"another model under the name 'served'.* \(cosine"):
        embedder.embed(["a"])


@pytest.mark.parametrize("kind", ["hangs", "is not there"])
def test_one_deadline_bounds_all_tries(
    server: ModelServer, connect: Callable[..., EndpointEmbedder], kind: str
) -> None:
    embedder = connect(timeout_seconds=0.4)
    embedder.identify()
    server.queue(*[Failure(hang_seconds=3.0 if kind == "hangs" else 0.0, hang_up=True)] * 20)
    with pytest.raises(EmbeddingUnavailableError, match=r"(did not answer in time|is out of reach: \w+) \(\d+ tr"):
        embedder.embed(["a"])


def test_each_batch_has_the_whole_time(server: ModelServer, connect: Callable[..., EndpointEmbedder]) -> None:
    embedder = connect(timeout_seconds=4.0, batch_size=2)
    embedder.identify()
    server.queue(*[Failure(hang_seconds=1.5, change=lambda reply: reply)] * 3)
    assert embedder.embed([f"text {number}" for number in range(6)]).shape == (6, DIMENSION)


def test_a_request_has_no_more_time_than_what_it_is_made_for(
    server: ModelServer, connect: Callable[..., EndpointEmbedder]
) -> None:
    embedder = connect(timeout_seconds=600.0)
    embedder.identify()
    server.queue(Failure(hang_seconds=600.0))  # longer than a test may take

    def embed_within_deadline() -> None:
        deadline.begin(0.2)
        with pytest.raises(EmbeddingUnavailableError):
            embedder.embed(["a"])

    copy_context().run(embed_within_deadline)


def test_a_batch_that_is_too_large_for_the_server_is_halved_and_stays_so(
    server: ModelServer, connect: Callable[..., EndpointEmbedder]
) -> None:
    embedder = connect(batch_size=16)
    embedder.identify()
    server.most_texts = 5
    texts = [f"text {number}" for number in range(32)]
    assert_allclose(embedder.embed(texts), unit(vectors_of(texts)), atol=1e-6)
    before = len(server.requests)
    embedder.embed(texts)
    assert max(len(request.json["input"]) for request in server.requests[before:]) <= 5


def test_a_text_that_is_too_long_for_the_server_is_read_in_halves(
    server: ModelServer, connect: Callable[..., EndpointEmbedder]
) -> None:
    embedder = connect(prefixes=Prefixes("", "passage: "))
    embedder.identify()
    server.most_characters = 700
    text = "word " * 200
    vectors = embedder.embed(["short", text])
    halves = [
        request.json["input"] for request in server.requests if request.json["input"][0].startswith("passage: w")
    ]
    assert len(halves) == 3, "the whole, and both halves"
    assert all(len(sent) == 1 and sent[0].startswith("passage: ") for sent in halves)
    assert_allclose(vectors[0], unit(vectors_of(["passage: short"]))[0], atol=1e-6)
    assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


def test_a_short_text_that_the_server_refuses_is_an_error_with_its_words(
    server: ModelServer, connect: Callable[..., EndpointEmbedder]
) -> None:
    embedder = connect()
    embedder.identify()
    server.queue(Failure(status=400, body=b'{"error": {"message": "this model does not exist"}}'))
    with pytest.raises(EmbeddingError, match=r"status 400.*this model does not exist"):
        embedder.embed(["a"])


def test_refused_api_key_is_not_shown(connect: Callable[..., EndpointEmbedder]) -> None:
    with ModelServer(vectors_of, api_key="right") as guarded:
        assert connect(url=guarded.base_url, api_key="right").embed(["a"]).shape == (1, DIMENSION)
        with pytest.raises(
            EmbeddingUnavailableError, match=r"refused the key .* ENGRAM_EMBEDDING_API_KEY\.$"
        ) as told:
            connect(url=guarded.base_url, api_key="wrong-key").embed(["a"])
        assert "wrong-key" not in str(told.value)


def test_a_wrong_path_says_where_to_look(server: ModelServer, connect: Callable[..., EndpointEmbedder]) -> None:
    with pytest.raises(
        EmbeddingUnavailableError, match=r"nothing at http.*/nowhere/embeddings.*ENGRAM_EMBEDDING_URL"
    ):
        connect(url=f"{server.root}/nowhere").embed(["a"])


@pytest.mark.parametrize("url", ["localhost:8080", "http://", "http://user:word@host/v1", "http://host/v1?key=a"])
def test_an_address_that_cannot_be_used_is_refused(connect: Callable[..., EndpointEmbedder], url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^ENGRAM_EMBEDDING_URL"):
        connect(url=url)


def test_a_server_that_was_away_is_asked_again_later(
    server: ModelServer, connect: Callable[..., EndpointEmbedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = connect(max_attempts=1)
    server.queue(Failure(status=503, body=b""))
    for _ in range(3):
        with pytest.raises(EmbeddingUnavailableError):
            embedder.identify()
    assert len(server.requests) == 1
    with pytest.raises(EmbeddingUnavailableError):
        _ = embedder.fingerprint
    assert not embedder.is_identified
    monkeypatch.setattr(endpoint_encoder, "RETRY_SECONDS", 0.0)
    embedder.identify()
    assert embedder.is_identified
