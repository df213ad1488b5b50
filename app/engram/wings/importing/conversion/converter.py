"""Conversion in a process of its own, which a hostile file can crash or stall without harm.

The process has a bound on memory, none of the service's environment, and no file may be written by it. It is
killed, with the programs that it runs, when a file takes too long.
"""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from types import TracebackType
from typing import Any, Self

from engram.wings.importing.conversion import chunks, old_office
from engram.wings.importing.conversion.conversion_template import ForkedProcess, receive, send
from engram.wings.importing.conversion.documents import (
    Conversion,
    ImportedPassage,
    NotInstalledError,
    UnreadableError,
)
from engram.wings.importing.conversion.formats import find_kind, is_lock_file
from engram.wings.importing.conversion.import_limits import ConversionLimits

_POLL_SECONDS = 0.2
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
        self._process: ForkedProcess | None = None

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
            self._process.end()
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask_process(self, source: str, ends: float, header: bytes, data: bytes) -> Any:
        if self._process is not None and self._process.has_ended:
            self.close()
        process = self._process = self._process or ForkedProcess.start()
        answered, late = threading.Event(), threading.Event()

        def watch() -> None:
            while not answered.wait(max(0.0, min(_POLL_SECONDS, ends - time.monotonic()))):
                if time.monotonic() >= ends:
                    late.set()
                if late.is_set() or self._is_abandoned():
                    process.kill()
                    return

        watcher = threading.Thread(target=watch, name="conversion", daemon=True)
        watcher.start()
        try:
            for part in (header, data):
                send(process.stream, part)
            answer = receive(process.stream)
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
