"""Threads that do what the test itself would do, with its tenancy."""

import concurrent.futures
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from engram.context import tenancy


def make_thread(work: Callable[..., object], *arguments: Any, **options: Any) -> threading.Thread:
    """Make a thread; it is not started yet."""
    return threading.Thread(target=tenancy.carry(work), args=arguments, kwargs=options)


class ThreadPoolExecutor(concurrent.futures.ThreadPoolExecutor):
    """A pool of such threads."""

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        """Have a thread do the work."""
        return super().submit(tenancy.carry(work), *arguments, **options)
