"""The HTTP server of the API process, which ends by draining."""

import os
import signal
import sys
import threading
import time
from functools import partial
from types import FrameType

import uvicorn
from fastapi import FastAPI

from engram.config.settings import Settings
from engram.runtime.connections import ConnectionLimits, LimitedConnection

HEAD_TIMEOUT_SECONDS = 10.0
"""How long a request's line and headers may take to arrive."""
BODY_TIMEOUT_SECONDS = 30.0
"""Time within which 4 KiB of a request's body, or its end, must arrive, or a part of the answer be taken."""
SWITCH_SECONDS = 0.0005
"""How long a thread may compute while others wait for the interpreter. A query waits for it a dozen times; behind
requests that are quick themselves, the default of 5 ms would double what it takes."""


class Server(uvicorn.Server):
    """Uvicorn, but told to end it says at once that it is not ready, and it returns instead of raising the signal.

    After ``shutdown_delay_seconds``, or at a second signal, it accepts nothing more, and what is in hand has
    ``shutdown_grace_seconds`` to finish; then it is cut off with a 503. Ctrl-C a third time ends it without that.
    """

    def __init__(self, app: FastAPI, settings: Settings) -> None:
        sys.setswitchinterval(SWITCH_SECONDS)
        limits = ConnectionLimits(settings.max_connections, HEAD_TIMEOUT_SECONDS, BODY_TIMEOUT_SECONDS)
        super().__init__(
            uvicorn.Config(
                app,
                host=settings.host,
                port=settings.port,
                http=partial(LimitedConnection, limits=limits),  # type: ignore[arg-type] # it is only ever called
                ws="none",
                access_log=False,
                log_level="warning",
                timeout_graceful_shutdown=settings.shutdown_grace_seconds,
            )
        )
        self._app = app
        self._delay_seconds = settings.shutdown_delay_seconds
        self._closes_at: float | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end, or hurry."""
        again = self._app.state.draining
        self._app.state.draining = True
        if self.should_exit:
            self.force_exit = self.force_exit or sig == signal.SIGINT
        elif again or not self.started:
            self.should_exit = True
        else:
            self._closes_at = time.monotonic() + self._delay_seconds

    async def on_tick(self, counter: int) -> bool:
        """Whether to accept nothing more."""
        if self._closes_at is not None and time.monotonic() >= self._closes_at:
            self.should_exit = True
        return await super().on_tick(counter)


def abandon_threads() -> None:
    """End the process even if a request that was cut off still runs: what it has not committed, it never did."""
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
