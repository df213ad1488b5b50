"""Limits of a connection: bytes and time of its head, pauses in its body, and the number of connections.

Uvicorn bounds none of it. A header that never ends is put together anew with each block that arrives, which keeps
the event loop from everybody else, and a request that never comes whole keeps its connection for good.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

import structlog
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from engram.api import origin_checks, problems

log = structlog.get_logger(__name__)

MAX_HEAD_BYTES = 64 * 1024
"""Of a request line with its headers."""
LEAST_BODY_BYTES = 4 * 1024
"""What has to come of a body within its time, if it is not over by then."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Bounds on connections.

    Attributes:
        connections: at once.
        head_seconds: from the first byte of a request, or from the connection's opening, to the end of its headers.
        body_seconds: within which at least ``LEAST_BODY_BYTES`` come of a body, and the client takes of an answer
            what stands in the way of more.
    """

    connections: int
    head_seconds: float
    body_seconds: float


class LimitedConnection(HttpToolsProtocol):
    """One connection, within limits."""

    def __init__(self, *arguments: Any, limits: ConnectionLimits, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._limits = limits
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._in_body = False
        self._head_bytes = 0
        self._body_bytes = 0
        self._refused = (400, "malformed-request", "Malformed request", "This is not HTTP.")

    @property
    def is_busy(self) -> bool:
        """Whether a request came whole and is being answered."""
        return self.cycle is not None and not self.cycle.response_complete and not self._in_body

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Make room for it if there is none, in place of one that has no whole request."""
        if len(self.connections) >= self._limits.connections:
            waiting = next(
                (one for one in self.connections if isinstance(one, LimitedConnection) and not one.is_busy), None
            )
            log.warning("too many connections", limit=self._limits.connections, dropped=waiting is not None)
            if waiting is None:
                super().connection_made(transport)  # type: ignore[arg-type] # of a TCP server it is a Transport
                self._refuse(503, "unavailable", "Temporarily unavailable", "There are too many connections.")
                return
            waiting.connections.discard(waiting)
            waiting.transport.abort()
        super().connection_made(transport)  # type: ignore[arg-type] # as above
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of the timers as well."""
        self._cancel()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass data to Uvicorn, and count it while it belongs to a head."""
        if self.transport.is_closing():
            return
        if not self._in_body:
            self._head_bytes += len(data)
            if self._timer is None:
                self._await_head()
        super().data_received(data)
        if self.transport.is_closing():
            self._cancel()
        elif not self._in_body and self._head_bytes > MAX_HEAD_BYTES:
            self._refuse(431, "head-too-large", "Request head too large", f"A head ends at {MAX_HEAD_BYTES} bytes.")

    def on_headers_complete(self) -> None:
        """The head is there: now for the body."""
        self._cancel()
        self._in_body = True
        self._head_bytes = 0
        super().on_headers_complete()
        self._await_body()

    def on_body(self, body: bytes) -> None:
        """Count what comes of it."""
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is there."""
        self._cancel()
        self._in_body = False
        super().on_message_complete()

    def pause_writing(self) -> None:
        """The client takes nothing: not for ever."""
        super().pause_writing()
        if self._write_timer is None:
            self._write_timer = self.loop.call_later(self._limits.body_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Note that the client reads again."""
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """A problem document, as from every route."""
        self._cancel()
        status, kind, title, detail = self._refused
        answer = problems.document(
            status, kind, title, detail, headers=origin_checks.HEADERS | {"connection": "close"}
        )
        head = [f"HTTP/1.1 {status} {title}".encode()]
        head += [name + b": " + value for name, value in answer.raw_headers]
        self.transport.write(b"\r\n".join(head) + b"\r\n\r\n" + bytes(answer.body))
        self.transport.close()

    def _refuse(self, status: int, kind: str, title: str, detail: str) -> None:
        self._refused = (status, kind, title, detail)
        if self.cycle is not None and self.cycle.response_started:  # it has been answered already, in part or whole
            self._cancel()
            self.transport.close()
        else:
            self.send_400_response(detail)

    def _await_head(self) -> None:
        self._timer = self.loop.call_later(self._limits.head_seconds, self._head_is_late)

    def _head_is_late(self) -> None:
        self._timer = None
        if self.is_busy:  # we are the ones who are late
            self._await_head()
            return
        if not self._head_bytes:  # nobody asked for anything
            self.transport.close()
            return
        self._refuse(408, "request-timeout", "Request timeout", "The request's head did not arrive in time.")

    def _await_body(self) -> None:
        self._body_bytes = 0
        self._timer = self.loop.call_later(self._limits.body_seconds, self._body_is_late)

    def _body_is_late(self) -> None:
        if self.flow.read_paused or self._body_bytes >= LEAST_BODY_BYTES:
            self._await_body()
            return
        self._timer = None
        self._refuse(408, "request-timeout", "Request timeout", "The request's body did not arrive in time.")

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
