"""A real HTTP server on a free local port that speaks the OpenAI chat-completions protocol.

The client under test makes real requests; only the model is a program. Queued replies are used first, in order,
then the handler, and without one the request is refused with a 400 that says so::

    with OpenAiServer() as server:
        server.queue('{"sufficient": true}')                        # a completion with this content
        server.queue(Reply(status=429, headers={"Retry-After": "1"}))  # an error in the protocol's shape
        server.queue(Reply(body=b"<html>"))                         # 200 with a body of another shape
        server.queue(Reply("{}", delay_seconds=2))                  # late; with drip=True blanks keep it alive
        server.queue(Reply(hang_up=True))                           # the connection closes without a reply
        llm = Llm(base_url=server.base_url, api_key=None, model="test")
        ...
        assert server.requests[0].json["messages"][1]["content"]

    with OpenAiServer(keyword_handler) as server: ...               # answers by shared words, see there
    with OpenAiServer(lambda request: '{"sufficient": false}') as server: ...
    with OpenAiServer(keyword_handler, api_key="secret") as server: ...  # 401 for any other bearer token

A handler receives the request's JSON and returns the content or a :class:`Reply`; it runs on the connection's
thread, so it must be thread-safe if the test sends requests in parallel.
"""

import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

_DRIP_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Reply:
    """One response.

    Below status 400, ``content`` is the assistant's text; from 400 on, the message of the error object. ``body``,
    if given, replaces the whole body. ``delay_seconds`` passes before the response, or with ``drip`` between the
    headers and the body, filled with blanks.
    """

    content: str | None = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_seconds: float = 0.0
    drip: bool = False
    body: bytes | None = None
    hang_up: bool = False


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request as received; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    json: dict[str, Any]
    received_at: float
    """``time.monotonic()`` in seconds."""


Handler = Callable[[dict[str, Any]], "str | Reply"]


class OpenAiServer:
    """The server; use it as a context manager. See the module's docstring."""

    def __init__(self, handler: Handler | None = None, *, api_key: str | None = None) -> None:
        self.handler = handler
        """What answers once the queue is empty."""
        self._api_key = api_key
        self._queue: deque[Reply] = deque()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._context = copy_context()  # a handler may ask the database, as the test may
        self._requests: list[RecordedRequest] = []
        self._httpd = ThreadingHTTPServer(("127.0.0.1", 0), self._request_class())
        self._thread = threading.Thread(target=self._httpd.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._httpd.shutdown()
        self._thread.join()
        self._httpd.server_close()

    @property
    def base_url(self) -> str:
        """What an OpenAI client is configured with, ``/v1`` included."""
        return f"http://127.0.0.1:{self._httpd.server_address[1]}/v1"

    @property
    def requests(self) -> list[RecordedRequest]:
        """All chat-completion requests so far, in the order they arrived."""
        with self._lock:
            return list(self._requests)

    def queue(self, *replies: str | Reply) -> None:
        """Add replies that come before anything the handler says."""
        with self._lock:
            self._queue.extend(_as_reply(reply) for reply in replies)

    def clear(self) -> None:
        """Forget queued replies and recorded requests."""
        with self._lock:
            self._queue.clear()
            self._requests.clear()

    def _reply_to(self, request: RecordedRequest) -> Reply:
        with self._lock:
            self._requests.append(request)
            if self._api_key is not None and request.headers.get("authorization") != f"Bearer {self._api_key}":
                return Reply("Incorrect API key provided.", status=401)
            if self._queue:
                return self._queue.popleft()
        if self.handler is None:
            return Reply("The test programmed no reply to this request.", status=400)
        return _as_reply(self._context.copy().run(self.handler, request.json))

    def _request_class(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Request(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                if self.path != "/v1/chat/completions":
                    self._send(Reply(f"Unknown path {self.path}", status=404), {})
                    return
                try:
                    request = json.loads(data)
                except ValueError:
                    self._send(Reply("The body is not JSON.", status=400), {})
                    return
                headers = {name.lower(): value for name, value in self.headers.items()}
                self._send(
                    server._reply_to(RecordedRequest(self.path, headers, request, time.monotonic())), request
                )

            def _send(self, reply: Reply, request: dict[str, Any]) -> None:
                body = _body(reply, request) if reply.body is None else reply.body
                blanks = int(reply.delay_seconds / _DRIP_SECONDS) if reply.drip else 0
                if not reply.drip:
                    server._closing.wait(reply.delay_seconds)
                if reply.hang_up:
                    self.close_connection = True
                    return
                try:
                    self.send_response(reply.status)
                    headers = {"Content-Type": "application/json", **reply.headers}
                    for name, value in {**headers, "Content-Length": str(len(body) + blanks)}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    for _ in range(blanks):
                        self.wfile.write(b"\n")
                        server._closing.wait(_DRIP_SECONDS)
                    self.wfile.write(body)
                except ConnectionError:
                    self.close_connection = True  # the client timed out, as its test intends

            def log_message(self, format: str, *args: object) -> None:
                """Keep the test output quiet."""

        return Request


def keyword_handler(request: dict[str, Any]) -> str:
    """Act as an honest model of little wit: a sentence matters if it shares a word with question or answer.

    Words have four letters or more and count without their case and ending ("founded" meets "founder"). The
    evidence is sufficient if it holds all words of the question; the answer is the first supporting sentence;
    a time is a four-digit year. Which reply is due is read off the field names in the system message.
    """
    system, user = (request["messages"][index]["content"] for index in (0, 1))
    if "time_constraint" in system:
        year = re.search(r"\b\d{4}\b", _read_tag(user, "text"))
        return json.dumps({"time_constraint": year.group() if year else None})
    sentences = re.findall(r"^\[(\d+)\] (.*)$", _read_tag(user, "evidence"), re.MULTILINE)
    asked = _words(_read_tag(user, "question"))
    wanted = asked | _words(_read_tag(user, "proposed_answer"))
    supporting = [int(number) for number, text in sentences if wanted & _words(text)]
    held = set().union(*(_words(text) for _, text in sentences))
    if '"supporting"' in system:
        return json.dumps({"supporting": supporting, "confidence": 1.0 if supporting else 0.5})
    if '"cited"' in system:
        text = next((text for number, text in sentences if int(number) in supporting), "")
        return json.dumps({"answer": text, "cited": supporting, "sufficient": bool(supporting) and asked <= held})
    return json.dumps({"sufficient": bool(sentences) and asked <= held})


def _read_tag(prompt: str, tag: str) -> str:
    found = re.search(f"<{tag}>\n(.*?)\n</{tag}>", prompt, re.DOTALL)
    return found[1] if found else ""


def _words(text: str) -> set[str]:
    stop = {"what", "when", "where", "which", "whose", "that", "this", "with", "from", "were", "have", "does"}
    return {word[:5] for word in re.findall(r"\w{4,}", text.casefold()) if word not in stop}


def _as_reply(reply: str | Reply) -> Reply:
    return Reply(reply) if isinstance(reply, str) else reply


def _body(reply: Reply, request: dict[str, Any]) -> bytes:
    if reply.status >= 400:
        error = {"message": reply.content, "type": "invalid_request_error", "param": None, "code": None}
        return json.dumps({"error": error}).encode()
    prompt_tokens = sum(len(message["content"].split()) for message in request.get("messages", []))
    completion_tokens = len((reply.content or "").split())
    message = {"role": "assistant", "content": reply.content, "refusal": None}
    completion = {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request.get("model"),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }
    return json.dumps(completion).encode()
