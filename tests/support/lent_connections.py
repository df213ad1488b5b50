"""A guard of pooled connections: a thread holds one at most, and gives it back with nothing left on it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psycopg.pq import TransactionStatus
from sqlalchemy import QueuePool, event


class SecondConnectionError(AssertionError):
    """A thread asked for a pooled connection while it held another: some such threads wait for each other."""


@contextmanager
def guard_pools() -> Iterator[list[str]]:
    """In the block, raise in a thread that takes a second connection from a pool of any database.

    Threads of requests and of jobs are held to it. Python's main thread is not, since tests look on from there.

    Yields:
        What was wrong with connections that were given back: a transaction still open, or none begun any more.
    """
    held: dict[int, Any] = {}
    faults: list[str] = []
    lock = threading.Lock()

    def take(_connection: Any, record: Any, _proxy: Any) -> None:
        thread = threading.get_ident()
        if thread == threading.main_thread().ident:
            return
        with lock:
            if held.get(thread, record) is not record:  # else it is opened anew, as its server was lost
                raise SecondConnectionError("This thread already holds a pooled connection.")
            held[thread] = record

    def give_back(connection: Any, record: Any) -> None:
        with lock:
            for thread in [one for one, kept in held.items() if kept is record]:
                del held[thread]
        if connection is None or connection.closed:
            return
        if connection.autocommit:
            faults.append("autocommit is left on")
        if connection.info.transaction_status != TransactionStatus.IDLE:
            faults.append(f"left {connection.info.transaction_status.name}")

    event.listen(QueuePool, "checkout", take)
    event.listen(QueuePool, "checkin", give_back)
    try:
        yield faults
    finally:
        event.remove(QueuePool, "checkout", take)
        event.remove(QueuePool, "checkin", give_back)
