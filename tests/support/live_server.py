"""The ASGI application behind a real uvicorn server on a free port, in a thread of the test's process."""

import socket
import threading
from typing import Self

import uvicorn
from fastapi import FastAPI


class LiveServer:
    """The server; use it as a context manager."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._server = uvicorn.Server(uvicorn.Config(app, access_log=False, log_level="warning"))
        self._thread = threading.Thread(target=self._server.run, args=([self._listening],), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        while not self._server.started:
            self._thread.join(0.01)
            assert self._thread.is_alive(), "the server did not start"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port, as a socket is connected to."""
        address: tuple[str, int] = self._listening.getsockname()
        return address

    @property
    def url(self) -> str:
        """Base URL without a slash at the end."""
        return "http://{}:{}".format(*self.address)
