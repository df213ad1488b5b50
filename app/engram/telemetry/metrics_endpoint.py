"""Metrics on a port of their own; there processes that have no other port say as well whether they can work."""

import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from prometheus_client.metrics_core import Metric

from engram.context.errors import ConfigurationError
from engram.telemetry import metrics

PATH = "/metrics"
PATIENCE_SECONDS = 10.0
POLL_SECONDS = 0.1
"""The longest that ``close`` waits for the thread to look whether it is to end."""
Check = Callable[[], tuple[int, Mapping[str, object]]]
"""Answers with a status and what it is like, as JSON."""
_log = logging.getLogger(__name__)


class MetricsEndpoint:
    """Port of its own that answers ``GET /metrics`` and ``GET`` of each check."""

    def __init__(
        self,
        host: str,
        port: int,
        look: Callable[[], Iterable[Metric]] | None = None,
        checks: Mapping[str, Check] | None = None,
    ) -> None:
        """Listen at once.

        Args:
            checks: by their paths.

        Raises:
            ConfigurationError: that is not possible there.
        """

        class MetricsHandler(BaseHTTPRequestHandler):
            timeout = PATIENCE_SECONDS

            def do_GET(self) -> None:
                path = self.path.partition("?")[0]
                status, kind = 200, metrics.CONTENT_TYPE
                if path == PATH:
                    page = metrics.exposition(look)
                elif checks is not None and path in checks:
                    status, check = checks[path]()
                    page, kind = json.dumps(check).encode(), "application/json"
                else:
                    self.send_error(404)
                    return
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(page)))
                self.end_headers()
                self.wfile.write(page)

            def log_message(self, template: str, *values: object) -> None:
                _log.debug(template, *values)

        try:
            self._server = ThreadingHTTPServer((host, port), MetricsHandler)
        except OSError as error:
            raise ConfigurationError(
                f"Metrics cannot be shown on {host} port {port}: {error.strerror or error}."
            ) from error
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(POLL_SECONDS,), name="metrics", daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """Port that it listens on."""
        return int(self._server.server_address[1])

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
