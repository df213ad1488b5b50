"""Telemetry of every request: its id, in answer and log, its duration and its outcome."""

import time

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engram.telemetry import metrics, tracing
from engram.telemetry import request_id as request

HEADER = "x-request-id"
NO_ROUTE = "none"
METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})


class TelemetryMiddleware:
    """Goes around everything else, so that what is refused is told of as well."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = request.choose_id(headers.get(HEADER))
        method = scope["method"] if scope["method"] in METHODS else "other"
        status = 500
        began = time.perf_counter()

        async def send_marked(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        token = request.begin(request_id)
        metrics.IN_HAND.inc()
        try:
            with (
                structlog.contextvars.bound_contextvars(request_id=request_id),
                tracing.request(method, headers) as span,
            ):
                try:
                    await self._app(scope, receive, send_marked)
                finally:
                    route = find_route(scope)
                    tracing.record_answer(span, method, route, status, request_id)
        finally:
            metrics.IN_HAND.dec()
            metrics.REQUESTS.labels(find_route(scope), method, str(status)).inc()
            metrics.REQUEST_SECONDS.labels(find_route(scope)).observe(time.perf_counter() - began)
            request.end(token)


def find_route(scope: Scope) -> str:
    """The template of the path, whatever stands in the path itself."""
    return str(getattr(scope.get("route"), "path", NO_ROUTE))
