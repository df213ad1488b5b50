"""A real HTTP server on a free local port: embeddings as OpenAI has them, reranking as Cohere and TEI have it.

The client under test makes real requests; only the models are programs::

    with ModelServer(vectors=embedder.embed) as server:
        server.queue(Failure(status=429, headers={"Retry-After": "0"}))   # once, then it answers again
        server.queue(Failure(body=b'{"data": []}'))                       # 200 with another body
        server.queue(Failure(hang_seconds=5))                             # late
        ...
        assert server.requests[0].json["input"]
"""

import json
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Vectorise = Callable[[Sequence[str]], NDArray[np.float32]]
Score = Callable[[str, Sequence[str]], Sequence[float]]


@dataclass(frozen=True, slots=True)
class Failure:
    """One response in place of the model's: ``body``, or an error of this ``status``, after ``hang_seconds``.

    With ``change`` the model's own response is changed by it.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    hang_seconds: float = 0.0
    hang_up: bool = False
    change: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request as received; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    json: dict[str, Any]


class ModelServer:
    """The server; use it as a context manager.

    Args:
        vectors: texts to vectors, (n, d).
        scores: question and texts to one score each.
        most_texts: more in one request are refused with 413, as TEI does.
        most_characters: a longer text is refused with 400, as OpenAI does.
    """

    def __init__(
        self,
        vectors: Vectorise | None = None,
        scores: Score | None = None,
        *,
        api_key: str | None = None,
        most_texts: int = 10_000,
        most_characters: int = 1_000_000,
    ) -> None:
        self.vectors, self.scores = vectors, scores
        self.most_texts, self.most_characters = most_texts, most_characters
        self.requests: list[ModelRequest] = []
        self._api_key = api_key
        self._queue: deque[Failure] = deque()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._context = copy_context()  # a handler may ask the database, as the test may
        self._httpd = ThreadingHTTPServer(("127.0.0.1", 0), self._request_class())
        self._httpd.daemon_threads = True
        self._thread = threading.Thread(target=self._httpd.serve_forever, args=(0.01,), daemon=True)

    @property
    def root(self) -> str:
        """The server's address."""
        return f"http://127.0.0.1:{self._httpd.server_port}"

    @property
    def base_url(self) -> str:
        """Base URL of what OpenAI's clients ask."""
        return f"{self.root}/v1"

    def queue(self, *failures: Failure) -> None:
        """Answer the next requests like this."""
        with self._lock:
            self._queue.extend(failures)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._httpd.shutdown()
        self._httpd.server_close()
        self._thread.join()

    def _answer(self, request: ModelRequest) -> tuple[int, Any]:
        if self._api_key and request.headers.get("authorization") != f"Bearer {self._api_key}":
            return 401, {"error": {"message": "Incorrect API key provided."}}
        path = request.path.removeprefix("/v1")
        if path == "/models":
            return 200, {"object": "list", "data": [{"id": "test", "object": "model"}]}
        if path == "/embeddings" and self.vectors is not None:
            return self._embeddings(request.json)
        if path == "/rerank" and self.scores is not None:
            return self._rerank(request.json)
        return 404, {"error": {"message": f"no route {request.path}"}}

    def _embeddings(self, sent: Mapping[str, Any]) -> tuple[int, Any]:
        texts = sent["input"]
        if len(texts) > self.most_texts:
            return 413, {"error": f"batch size {len(texts)} > maximum allowed batch size {self.most_texts}"}
        if any(len(text) > self.most_characters for text in texts):
            return 400, {"error": {"message": "This model's maximum context length is exceeded."}}
        assert self.vectors is not None
        data = [
            {"object": "embedding", "index": place, "embedding": vector.astype(float).tolist()}
            for place, vector in enumerate(self.vectors(texts))
        ]
        return 200, {"object": "list", "model": sent["model"], "data": data, "usage": {"prompt_tokens": 1}}

    def _rerank(self, sent: Mapping[str, Any]) -> tuple[int, Any]:
        """The best first, as Cohere's protocol has it; TEI's has ``texts`` and answers with a bare list."""
        assert self.scores is not None
        texts = sent.get("texts", sent.get("documents"))
        if texts is None:
            return 422, {"error": "missing field `texts`"}
        scores = self.scores(sent["query"], texts)
        order = sorted(range(len(scores)), key=lambda place: -scores[place])
        if "texts" in sent:
            return 200, [{"index": place, "score": scores[place]} for place in order]
        return 200, {"results": [{"index": place, "relevance_score": scores[place]} for place in order]}

    def _request_class(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Request(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._reply({})

            def do_POST(self) -> None:
                self._reply(json.loads(self.rfile.read(int(self.headers["content-length"]))))

            def _reply(self, sent: dict[str, Any]) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                request = ModelRequest(self.path, headers, sent)
                with server._lock:
                    server.requests.append(request)
                    failure = server._queue.popleft() if server._queue else Failure()
                server._closing.wait(failure.hang_seconds)
                if failure.hang_up:
                    self.close_connection = True
                    return
                status, content = failure.status, None
                if failure.body is None and failure.status == 200:
                    status, content = server._context.copy().run(server._answer, request)
                    content = failure.change(content) if failure.change else content
                body = failure.body if failure.body is not None else json.dumps(content).encode()
                self.send_response(status)
                for name, value in failure.headers.items():
                    self.send_header(name, value)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        return Request
