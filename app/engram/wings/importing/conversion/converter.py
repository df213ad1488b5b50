"""Conversion in a process of its own, which a hostile file can crash or stall without harm.

The process has a bound on memory, none of the service's environment, and no file may be written by it. Its parent
ends it, with the programs that it runs, when a file takes too long.
"""

import json
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self, cast

import engram
from engram.wings.importing.conversion import chunks, old_office
from engram.wings.importing.conversion.documents import (
    Conversion,
    ImportedPassage,
    NotInstalledError,
    UnreadableError,
)
from engram.wings.importing.conversion.formats import find_kind, is_lock_file
from engram.wings.importing.conversion.import_limits import ConversionLimits

ROOT = Path(engram.__file__).resolve().parents[1]
_POLL_SECONDS = 0.2
_LENGTH = struct.Struct(">Q")
_FAILURES = {error.__name__: error for error in (UnreadableError, NotInstalledError)}


class Converter:
    """Converts files one after the other, in a process that is started when first needed.

    Threads of one converter wait for each other. Use it as a context manager, so that the process ends.

    Args:
        is_abandoned: polled while a file is read; once true, the process ends and the file is unreadable.
    """

    def __init__(self, limits: ConversionLimits, is_abandoned: Callable[[], bool] = lambda: False) -> None:
        self.limits = limits
        self._is_abandoned = is_abandoned
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def convert(
        self,
        source: str,
        data: bytes,
        *,
        kind: str | None = None,
        size: int = chunks.SIZE,
        overlap: int = chunks.OVERLAP,
    ) -> Conversion:
        """Read a file and cut it into passages; ``kind`` as for ``formats.convert``.

        Raises:
            UnreadableError: as ``formats.convert``, or it took too long or too much memory.
            NotInstalledError: a library that reads it is not installed.
        """
        if len(data) > self.limits.file_bytes:
            raise UnreadableError(f"{source} is larger than {self.limits.file_bytes >> 20} MiB.")
        kind = find_kind(source) if kind is None else kind
        with self._lock:
            if kind in old_office.PRESENT_KINDS and not is_lock_file(source):
                kind, data = old_office.modernise(source, data, kind, self.limits, self._is_abandoned)
            ends = time.monotonic() + self.limits.seconds
            header = {
                "source": source,
                "kind": kind,
                "size": size,
                "overlap": overlap,
                "limits": asdict(replace(self.limits, ends=ends)),
            }
            answer = self._ask_process(source, ends, json.dumps(header).encode(), data)
        if "error" in answer:
            raise _FAILURES.get(answer["error"], UnreadableError)(answer["detail"])
        passages = tuple(ImportedPassage(**one) for one in answer["passages"])
        return Conversion(passages, tuple(answer["notes"]), tuple(answer["differences"]))

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            _kill(self._process)
            self._process.communicate()
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask_process(self, source: str, ends: float, header: bytes, data: bytes) -> Any:
        process = self._start_process()
        answered, late = threading.Event(), threading.Event()

        def watch() -> None:
            while not answered.wait(max(0.0, min(_POLL_SECONDS, ends - time.monotonic()))):
                if time.monotonic() >= ends:
                    late.set()
                if late.is_set() or self._is_abandoned():
                    _kill(process)
                    return

        watcher = threading.Thread(target=watch, name="conversion", daemon=True)
        watcher.start()
        try:
            incoming, outgoing = cast(IO[bytes], process.stdin), cast(IO[bytes], process.stdout)
            for part in (header, data):
                send(incoming, part)
            incoming.flush()
            answer = receive(outgoing)
        except OSError:
            answer = None
        except BaseException:
            self.close()  # an interrupted exchange leaves the process in the middle of a file
            raise
        finally:
            answered.set()
            watcher.join()
        if answer is None:
            self.close()
            if late.is_set():
                raise UnreadableError(f"{source} took longer than {self.limits.seconds:g} seconds to read.")
            raise UnreadableError(f"{source} broke the reader, or needs more memory than it may take.")
        return json.loads(answer)

    def _start_process(self) -> "subprocess.Popen[bytes]":
        if self._process is None or self._process.poll() is not None:
            self.close()
            environment = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
            self._process = subprocess.Popen(
                [sys.executable, "-m", "engram.wings.importing.conversion.conversion_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment | {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"},
                start_new_session=True,
            )
        return self._process


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process that leads a session, with the programs that it runs."""
    if process.returncode is None:  # else its number may be another's by now
        os.killpg(process.pid, signal.SIGKILL)


def send(stream: IO[bytes], part: bytes) -> None:
    """Write a part with its length before it."""
    stream.write(_LENGTH.pack(len(part)))
    stream.write(part)


def receive(stream: IO[bytes]) -> bytes | None:
    """Read a part; None at the end of the stream, also inside a part."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    part = stream.read(length)
    return part if len(part) == length else None
