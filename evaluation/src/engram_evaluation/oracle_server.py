"""A local HTTP server that speaks the OpenAI chat-completions protocol; what it says is a function's.

What is measured against it goes through the service's own client, so timeouts, repair and the counting of calls and
tokens are those of any endpoint. Tokens are counted as words: about three quarters of what a tokenizer would count.
"""

import json
import threading
import time
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Messages = Sequence[dict[str, str]]
Reply = Callable[[Messages], str]
MAX_REQUEST_BYTES = 2**20
PATH = "/v1/chat/completions"


class ChatServer:
    """The server, on a free port of this machine only; use it as a context manager."""

    def __init__(self, reply: Reply) -> None:
        self._httpd = ThreadingHTTPServer(("127.0.0.1", 0), _handler(reply))
        self._httpd.daemon_threads = True
        self._thread = threading.Thread(target=self._httpd.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._httpd.shutdown()
        self._thread.join()
        self._httpd.server_close()

    @property
    def base_url(self) -> str:
        """Base URL for a client, ``/v1`` included."""
        return f"http://127.0.0.1:{self._httpd.server_address[1]}/v1"


def _handler(reply: Reply) -> type[BaseHTTPRequestHandler]:
    class OracleHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", "0"))
            if length > MAX_REQUEST_BYTES:
                self.close_connection = True  # the body is not read, so nothing can follow it
                self._fail(413, "The request is too long.")
                return
            body = self.rfile.read(length)
            if self.path != PATH:
                self._fail(404, f"There is only {PATH}.")
                return
            try:
                request = json.loads(body)
                messages = _messages(request)
            except (ValueError, KeyError, TypeError):
                self._fail(400, "The request is not a chat completion's.")
                return
            try:
                reply_text = reply(messages)
            except LookupError as error:
                self._fail(400, str(error.args[0]) if error.args else "unknown")
                return
            self._send(200, _completion(request.get("model"), messages, reply_text))

        def _fail(self, status: int, message: str) -> None:
            self._send(status, {"error": {"message": message, "type": "invalid_request_error"}})

        def _send(self, status: int, document: dict[str, Any]) -> None:
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: the client logs what it needs."""

    return OracleHandler


def _messages(request: Any) -> Messages:
    return [{"role": str(one["role"]), "content": str(one["content"])} for one in request["messages"]]


def _completion(model: Any, messages: Messages, text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    read, written = sum(len(one["content"].split()) for one in messages), len(text.split())
    return {
        "id": "chatcmpl-oracle",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
    }
