"""A template of processes that convert: it has imported what they need, and forks each of them.

To import takes most of a second, and to fork a few milliseconds. The template reads no document, so a process that
it forks has seen none.
"""

import atexit
import os
import select
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import engram

ROOT = Path(engram.__file__).resolve().parents[1]
START_SECONDS = 60.0
"""Within which a template forks a process, its own start included."""
_PASSED_ON = ("PATH", "LANG", "LC_ALL")
_LENGTH = struct.Struct(">Q")
_lock = threading.Lock()
_templates: list["_Template"] = []
"""The template of this process, if there is one."""


class ForkedProcess:
    """A process that converts.

    Attributes:
        stream: leads to it and from it.
    """

    def __init__(self, stream: socket.socket, lifeline: socket.socket) -> None:
        self.stream = stream
        self._lifeline = lifeline

    @classmethod
    def start(cls) -> Self:
        """Fork it from the template, which is started if it does not run."""
        process = cls._order()
        if process.hear_template():
            return process
        return cls._order()  # the template ended just then

    @classmethod
    def _order(cls) -> Self:
        stream, its_stream = socket.socketpair()
        lifeline, its_lifeline = socket.socketpair()
        lifeline.settimeout(START_SECONDS)
        with its_stream, its_lifeline, suppress(OSError):
            _send_order(its_stream, its_lifeline)
        return cls(stream, lifeline)

    @property
    def has_ended(self) -> bool:
        """Whether it is gone, asked between two files."""
        return _has_ended(self.stream)

    def kill(self) -> None:
        """Have the template kill it and the programs that it runs."""
        with suppress(OSError):  # it is gone
            self._lifeline.shutdown(socket.SHUT_WR)

    def end(self) -> None:
        """Kill it, and return once it is gone."""
        self.kill()
        while self.hear_template():
            pass
        self._lifeline.close()
        self.stream.close()

    def hear_template(self) -> bool:
        """Wait until the template says that the process is forked; False once it closes its end of the lifeline."""
        with suppress(OSError):
            return bool(self._lifeline.recv(1))
        return False


class _Template:
    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self.orders, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "engram.wings.importing.conversion.conversion_process"],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**environment, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
                start_new_session=True,
            )

    @property
    def has_ended(self) -> bool:
        """Whether it was killed, or had nothing to do for long."""
        return _has_ended(self.orders)

    def close(self) -> None:
        """End it, with the processes that it forked."""
        self.orders.close()
        self._process.wait()


def _send_order(*files: socket.socket) -> None:
    """Pass the ends of a new process to the template, which says when it is forked."""
    environment = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    with _lock:
        if not _templates or _templates[0].environment != environment or _templates[0].has_ended:
            close_template()
            _templates.append(_Template(environment))
        socket.send_fds(_templates[0].orders, [b"."], [file.fileno() for file in files])


@atexit.register
def close_template() -> None:
    """End the template of this process."""
    while _templates:
        _templates.pop().close()


def _has_ended(stream: socket.socket) -> bool:
    """Whether the other end of a stream that brings nothing now is closed."""
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    return bool(poll.poll(0))


def send(stream: socket.socket, part: bytes) -> None:
    """Write a part with its length before it."""
    stream.sendall(_LENGTH.pack(len(part)))
    stream.sendall(part)


def receive(stream: socket.socket) -> bytes | None:
    """Read a part; None at the end of the stream, also inside a part."""
    head = stream.recv(_LENGTH.size, socket.MSG_WAITALL)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    part = stream.recv(length, socket.MSG_WAITALL)
    return part if len(part) == length else None
