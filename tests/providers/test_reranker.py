"""Rerankers: a server in the shapes that there are, with what servers do wrong, and a model folder."""

import shutil
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from engram.context.errors import ConfigurationError
from engram.providers.reranker import RerankerError
from engram.providers.reranker.cross_encoder import CrossEncoder
from engram.providers.reranker.endpoint_reranker import EndpointReranker
from engram.providers.reranker.folder_reranker import FolderReranker
from tests.support.dripping_server import drip_headers
from tests.support.encoder import tiny_cross_encoder
from tests.support.model_server import Failure, ModelServer

pytestmark = pytest.mark.torch

TEXTS = ["a", "bbb", "cc"]


def lengths(_: str, texts: Sequence[str]) -> list[float]:
    return [len(text) / 10 for text in texts]


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(scores=lengths, api_key="secret") as running:
        yield running


@pytest.fixture
def reranker(server: ModelServer) -> Iterator[EndpointReranker]:
    made = EndpointReranker(server.root, "ms-marco", "secret")
    yield made
    made.close()


def test_scores_come_in_the_order_of_the_texts(server: ModelServer, reranker: EndpointReranker) -> None:
    assert reranker.score("how long?", TEXTS, 5.0) == [0.1, 0.3, 0.2]
    assert server.requests[0].json == {"model": "ms-marco", "query": "how long?", "documents": TEXTS, "top_n": 3}
    assert server.requests[0].headers["authorization"] == "Bearer secret"
    assert reranker.name == "ms-marco"


def test_a_server_that_takes_texts_is_recognised_once(server: ModelServer, reranker: EndpointReranker) -> None:
    server.queue(Failure(status=422, body=b'{"error": "Failed to deserialize: missing field `texts`"}'))
    assert reranker.score("how long?", TEXTS, 5.0) == [0.1, 0.3, 0.2]
    assert reranker.score("how long?", TEXTS, 5.0) == [0.1, 0.3, 0.2]
    assert [set(request.json) & {"texts", "documents"} for request in server.requests] == [
        {"documents"},
        {"texts"},
        {"texts"},
    ]


def test_a_server_whose_headers_never_end_is_hung_up_on() -> None:
    hung_up = threading.Event()
    with drip_headers(hung_up) as address:
        reranker = EndpointReranker(address, "ms-marco", None)
        with pytest.raises(RerankerError, match="did not answer in time"):
            reranker.score("how long?", TEXTS, 0.2)
        assert hung_up.wait(10)
        reranker.close()


BROKEN: dict[str, tuple[Failure, str]] = {
    "overloaded": (Failure(status=503, body=b""), "status 503"),
    "refused": (Failure(status=400, body=b"no such model"), "status 400: no such model"),
    "not JSON": (Failure(body=b"<html>"), "not JSON"),
    "partial": (Failure(change=lambda reply: {"results": reply["results"][:1]}), "1 scores for 3 texts"),
    "words": (Failure(body=b'{"results": [{"index": 0, "relevance_score": "high"}]}'), "1 scores for 3|no number"),
    "another shape": (Failure(body=b'{"scores": [1, 2, 3]}'), "no list of results"),
    "one twice": (
        Failure(change=lambda reply: {"results": [reply["results"][0]] * 3}),
        "`index` numbers are not those",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_response_without_scores_says_why(server: ModelServer, reranker: EndpointReranker, case: str) -> None:
    failure, reason = BROKEN[case]
    server.queue(failure)
    with pytest.raises(RerankerError, match=reason):
        reranker.score("how long?", TEXTS, 5.0)
    assert len(server.requests) == 1


def test_a_slow_server_is_left_at_the_end_of_the_time(server: ModelServer, reranker: EndpointReranker) -> None:
    server.queue(Failure(hang_seconds=600.0))  # longer than a test may take
    with pytest.raises(RerankerError, match="did not answer in time"):
        reranker.score("how long?", TEXTS, 0.1)


@pytest.fixture(scope="module")
def tiny_cross(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small cross-encoder with random weights."""
    return tiny_cross_encoder(tmp_path_factory.mktemp("models") / "tiny-cross")


def test_a_folder_reads_question_and_text_together(tiny_cross: Path) -> None:
    folder = FolderReranker(tiny_cross)
    try:
        assert folder.name.startswith("tiny-cross ")
        folder.load()
        scores = folder.score("Where was Marie Curie born?", TEXTS, 60.0)
        assert all(0.0 < score < 1.0 for score in scores)
        assert scores == pytest.approx(
            [folder.score("Where was Marie Curie born?", [text], 60.0)[0] for text in TEXTS], abs=1e-5
        )
        assert folder.score("Where?", TEXTS, 60.0) != pytest.approx(scores, abs=1e-7)
        assert folder.score("Where?", [], 60.0) == []
    finally:
        folder.close()


def test_a_folder_that_is_too_slow_is_left(tiny_cross: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = FolderReranker(tiny_cross)
    released = threading.Event()

    def score_slowly(*_: Any) -> list[float]:
        released.wait(30.0)
        return [0.5] * len(TEXTS)

    monkeypatch.setattr(CrossEncoder, "score", score_slowly)
    try:
        with pytest.raises(RerankerError, match="tiny-cross did not answer in time"):
            folder.score("Where?", TEXTS, 0.05)
    finally:
        released.set()
        folder.close()


def test_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^ENGRAM_RERANKER_FOLDER: .* has no config\.json\.$"):
        FolderReranker(tmp_path)


def test_folder_that_says_nothing_of_its_model_is_refused(tiny_cross: Path, tmp_path: Path) -> None:
    unnamed = shutil.copytree(tiny_cross, tmp_path / "unnamed")
    (unnamed / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        CrossEncoder(unnamed)
