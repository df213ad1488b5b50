"""A worker in a thread of the test's process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from engram.composition.container import Application
from engram.runtime.worker import Worker
from tests.support.processes import PATIENCE_SECONDS


@contextmanager
def run_in_thread(application: Application) -> Iterator[Application]:
    """Run a worker of the application for the length of a block; then stop it and close the application."""
    with start_worker(application):
        yield application


@contextmanager
def start_worker(application: Application) -> Iterator[Worker]:
    """Like ``run_in_thread``, but yield the worker."""
    worker = Worker(application)
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(PATIENCE_SECONDS)
        application.close()
        assert not thread.is_alive()
