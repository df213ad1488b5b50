"""Where the processor's time went, by process."""

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping

import psutil

Processes = Callable[[], Mapping[int, str]]


class Usage:
    """CPU seconds of processes that come and go, added up by name between ``with`` and its end.

    What a process used after the last look at it before its end is missing.
    """

    def __init__(self, processes: Processes, every: float = 1.0) -> None:
        """``processes`` gives the ids that run now and the name under which each counts."""
        self._processes = processes
        self._every = every
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._seen: dict[int, float] = {}
        self.seconds: dict[str, float] = defaultdict(float)

    def __enter__(self) -> "Usage":
        for pid in self._processes():
            self._seen[pid] = _read_processor_seconds(pid) or 0.0
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._stopped.wait(self._every):
            self._look()

    def _look(self) -> None:
        for pid, name in self._processes().items():
            used = _read_processor_seconds(pid)
            if used is not None:
                self.seconds[name] += max(0.0, used - self._seen.get(pid, 0.0))
                self._seen[pid] = used


def _read_processor_seconds(pid: int) -> float | None:
    try:
        times = psutil.Process(pid).cpu_times()
    except psutil.NoSuchProcess:
        return None
    return float(times.user + times.system)
