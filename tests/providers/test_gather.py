"""Calls that are gathered, held against the same calls one by one."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.typing import NDArray

from engram.providers.embedder.batch_gathering import FEW_TEXTS, MOST_TEXTS, SHORT_CHARACTERS, BatchGatherer


class Slow:
    """Lengths of texts for vectors; it waits until it is told to go on, and keeps what it was called with."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.called = threading.Semaphore(0)
        self.calls: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls.append(list(texts))
        self.called.release()
        assert self.go_on.wait(10)
        if "bad" in texts:
            raise ValueError("bad")
        return np.array([[len(text)] for text in texts], dtype=np.float32)


def waits(gather: BatchGatherer, count: int) -> Callable[[], bool]:
    return lambda: gather.waiting == count


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        threading.Event().wait(0.005)
    raise AssertionError("it never came about")


def test_requests_during_encoding_form_one_next_batch() -> None:
    slow = Slow()
    gather = BatchGatherer(slow)
    with ThreadPoolExecutor(32) as pool:
        first = pool.submit(gather, ["a"])
        assert slow.called.acquire(timeout=10)
        others = [pool.submit(gather, ["b" * size, "c"]) for size in range(1, 11)]
        wait_until(waits(gather, 10))
        slow.go_on.set()
        assert first.result(10).tolist() == [[1]]
        assert [other.result(10).tolist() for other in others] == [[[size], [1]] for size in range(1, 11)]
    assert slow.calls[0] == ["a"]
    assert [len(call) for call in slow.calls[1:]] == [MOST_TEXTS, 20 - MOST_TEXTS]
    assert gather(["again"]).tolist() == [[5]]


def test_a_long_text_joins_no_batch() -> None:
    slow = Slow()
    gather = BatchGatherer(slow)
    slow.go_on.set()
    long = "b" * (SHORT_CHARACTERS + 1)
    with ThreadPoolExecutor(2) as pool:
        slow.go_on.clear()
        first = pool.submit(gather, [long])
        assert slow.called.acquire(timeout=10)
        second = pool.submit(gather, ["a"])
        assert slow.called.acquire(timeout=10), "it does not wait for the long one"
        slow.go_on.set()
        assert (first.result(10).tolist(), second.result(10).tolist()) == ([[len(long)]], [[1]])
    assert slow.calls == [[long], ["a"]]


def test_large_batches_are_encoded_without_waiting() -> None:
    slow = Slow()
    gather = BatchGatherer(slow)
    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(gather, ["a"])
        assert slow.called.acquire(timeout=10)
        many = pool.submit(gather, ["b"] * (FEW_TEXTS + 1))
        assert slow.called.acquire(timeout=10)
        slow.go_on.set()
        assert (len(one.result(10)), len(many.result(10))) == (1, FEW_TEXTS + 1)


def test_error_reaches_only_its_caller() -> None:
    slow = Slow()
    gather = BatchGatherer(slow)
    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(gather, ["a"])
        assert slow.called.acquire(timeout=10)
        others = [pool.submit(gather, ["b"]), pool.submit(gather, ["bad"])]
        wait_until(waits(gather, 2))
        slow.go_on.set()
        assert len(first.result(10)) == 1
        assert others[0].result(10).tolist() == [[1]]
        with pytest.raises(ValueError, match="bad"):
            others[1].result(10)
    assert gather(["c"]).tolist() == [[1]]
