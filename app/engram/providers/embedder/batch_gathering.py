"""Texts that arrive while others are encoded are encoded together: a batch of eight costs what five do one by one.

Nobody waits for company. Whoever comes first is encoded at once and alone; what comes meanwhile is one batch next.
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
MOST_TEXTS = 16
"""In a batch: longer ones hardly save more, and everyone in one waits for all of it."""
SHORT_CHARACTERS = 400
"""Of all texts of a call that shares its batch. A longer question is a batch by itself, so short ones go on."""
FEW_TEXTS = 4
"""Up to which a call shares its batch; what brings more is a batch by itself, and stands in nobody's way."""


class _Call:
    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.turn = threading.Event()
        self.tried = False
        self.vectors: Vectors | None = None


class BatchGatherer:
    """Calls of ``encode`` from several threads, gathered."""

    def __init__(self, encode: Callable[[Sequence[str]], Vectors]) -> None:
        """``encode``: texts to vectors, (n, d), in their order."""
        self._encode = encode
        self._lock = threading.Lock()
        self._waiting: list[_Call] = []
        self._busy = False

    @property
    def waiting(self) -> int:
        """Number of calls that wait for a batch."""
        return len(self._waiting)

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """Vectors, (n, d), as ``encode`` gives them; where a batch fails, each of its calls is made alone."""
        if not 0 < len(texts) <= FEW_TEXTS or sum(map(len, texts)) > SHORT_CHARACTERS:
            return self._encode(texts)
        call = _Call(texts)
        with self._lock:
            self._waiting.append(call)
            first = not self._busy
            self._busy = True
        if not first:
            call.turn.wait()
        if not call.tried:
            self._run()
        return self._encode(texts) if call.vectors is None else call.vectors

    def _run(self) -> None:
        """Encode what waits, as far as it goes into one batch, and give the next the word."""
        with self._lock:
            calls, texts = [], 0
            while self._waiting and texts + len(self._waiting[0].texts) <= MOST_TEXTS:
                calls.append(self._waiting.pop(0))
                texts += len(calls[-1].texts)
        try:
            with suppress(Exception):  # whose text it is hears of it when it is encoded alone
                vectors = self._encode([text for call in calls for text in call.texts])
                start = 0
                for call in calls:
                    call.vectors = vectors[start : start + len(call.texts)]
                    start += len(call.texts)
        finally:
            with self._lock:
                self._busy = bool(self._waiting)
                following = self._waiting[:1]
            for call in calls:
                call.tried = True
            for call in (*calls, *following):
                call.turn.set()
