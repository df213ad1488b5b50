"""The worker process: applies feedback as it is announced, does jobs, sweeps for strays, and keeps the vector
indexes healthy."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial

import redis
import structlog

from engram.composition.container import Application
from engram.context import tenancy
from engram.context.errors import EngramError, UnavailableError
from engram.runtime.heartbeat import Heartbeat
from engram.services.jobs.job_runner import JobThreads
from engram.storage.wake_stream import Wake
from engram.telemetry.metrics_endpoint import Check

log = structlog.get_logger(__name__)

BLOCK_MS = 1_000
LEFT_MS = 50
"""Milliseconds to wait for news while verdicts wait on a collection that another worker learns."""
BATCH_SIZE = 300
"""Verdicts that are applied together at most."""
GATHER_SECONDS = 0.5
"""Time from a batch that was not full to the next: verdicts that come in a stream are applied together."""
SWEEP_SECONDS = 5.0
WING_SWEEP_SECONDS = 5.0
"""How often verdicts are looked for whose wake-up was lost, and wings do what is due."""
INDEXES_SECONDS = 600.0
"""How often vector indexes are looked at."""
JOB_POLL_SECONDS = 0.5
ABANDONED_SECONDS = 60.0
NAMES_SECONDS = 1.0
KINDS_SECONDS = 60.0
LEVELS_SECONDS = 10.0
STATISTICS_SECONDS = 2.0
CLOSING_SECONDS = 5.0
RETENTION_SECONDS = 3600.0
HELD_SECONDS = 60.0
"""Until a worker that found another at retention looks for what is left to do: that one may have been lost."""
RETRY_SECONDS = 1.0


class Worker:
    """Loops until stopped: feedback in this thread, and in others jobs, what ``run`` lists, and each wing's sweep.

    Feedback and jobs finish the batch in hand; an index that is being built anew is given up.
    """

    def __init__(self, app: Application) -> None:
        self._app = app
        self._stopping, self._warm = threading.Event(), threading.Event()
        self._heart = Heartbeat(app.stream, app.settings.worker_heartbeat_file)
        self._postponed_wakes: list[Wake] = []
        self._swept = 0.0
        self._learn_due = 0.0
        self._indexes_due = 0.0
        self._abandoned_due = 0.0

    def stop(self) -> None:
        """Finish what is in hand and return from ``run``."""
        self._stopping.set()

    def run(self) -> None:
        """Work until stopped."""
        self._app.startup.warm_up()
        self._warm.set()
        beside = {
            "statistics": self._analyse,
            "retention": self._retire,
            "names": self._name,
            "kinds": self._tell_kinds,
            "levels": self._measure_levels,
            "closing": self._remove_closed,
            "maintenance": self._maintain_indexes,
        }
        for name, sweep in self._app.list_wing_sweeps().items():
            beside[f"wing {name}"] = partial(self._sweep_wing, sweep)
        threads = [
            threading.Thread(target=self._repeat_forever, args=loop, name=loop[0]) for loop in beside.items()
        ]
        threads.append(threading.Thread(target=self._do_jobs, name="jobs"))
        for thread in threads:
            thread.start()
        self._heart.start()
        log.info("worker ready")
        self._repeat_forever("feedback", self._learn)
        for thread in threads:
            thread.join()
        self._heart.stop()
        log.info("worker stopped")

    def checks(self) -> dict[str, Check]:
        """Return the checks of a probe: whether the worker lives, and whether it can work."""
        return {"/healthz": self._lives, "/readyz": self._report_readiness}

    def _lives(self) -> tuple[int, dict[str, object]]:
        if stuck := self._heart.list_stuck_loops():
            return 503, {"status": "stuck", "loops": stuck}
        return 200, {"status": "ok"}

    def _report_readiness(self) -> tuple[int, dict[str, object]]:
        """Report readiness: starting, ending, or without a usable Postgres."""
        if not self._warm.is_set() or self._stopping.is_set():
            return 503, {"status": "ending" if self._stopping.is_set() else "starting"}
        try:
            return 200, asdict(self._app.maintenance.health.readiness())
        except EngramError as error:
            return 503, {"status": "unavailable", "detail": error.detail}

    def _repeat_forever(self, name: str, step: Callable[[], None]) -> None:
        """Repeat ``step`` for all tenants.

        A server that is away is waited for, and any other failure is logged and outlived.
        """
        while not self._stopping.is_set():
            try:
                with tenancy.allow_all_tenants():
                    step()
            except UnavailableError as error:
                log.warning("waiting for a server", loop=name, error=error.detail)
                self._stopping.wait(RETRY_SECONDS)
            except Exception:
                log.exception("loop failed", loop=name)
                self._stopping.wait(RETRY_SECONDS)

    def _learn(self) -> None:
        self._heart.turn("feedback")
        if self._stopping.wait(max(0.0, self._learn_due - time.monotonic())):
            return
        try:
            wakes = self._app.stream.receive(BATCH_SIZE, LEFT_MS if self._postponed_wakes else BLOCK_MS)
        except redis.RedisError:  # the stream tells of it
            self._sweep()
            self._stopping.wait(RETRY_SECONDS)
            return
        if self._stopping.is_set():  # what came after that is for others, or for the next start
            return
        if wakes and len(wakes) < BATCH_SIZE:
            self._learn_due = time.monotonic() + GATHER_SECONDS
        self._apply_announced(wakes)
        if time.monotonic() - self._swept >= SWEEP_SECONDS:
            self._sweep()

    def _apply_announced(self, wakes: Sequence[Wake]) -> None:
        """Apply announced verdicts, by collection; postpone those of collections that another worker applies."""
        by_collection: dict[int, list[Wake]] = {}
        for wake in (*self._postponed_wakes, *wakes):
            by_collection.setdefault(wake[1], []).append(wake)
        self._postponed_wakes, handled = [], list[Wake]()
        for collection_id, announced in sorted(by_collection.items()):
            is_busy = (
                self._app.learning.learner.apply_unless_busy(collection_id, [event for _, _, event in announced])
                is None
            )
            (self._postponed_wakes if is_busy else handled).extend(announced)
        if handled:
            try:
                self._app.stream.acknowledge(handled)
            except redis.RedisError as error:
                log.warning("wake-ups not acknowledged; they will be found applied", error=str(error))

    def _sweep(self) -> None:
        """Apply what has waited for longer than a wake-up takes."""
        self._swept = time.monotonic()
        applied = 0
        while not self._stopping.is_set():
            self._heart.turn("feedback")
            batch = self._app.learning.learner.apply_overdue(SWEEP_SECONDS, BATCH_SIZE)
            applied += batch
            if batch < BATCH_SIZE:
                break
        if applied:
            log.info("sweep applied overdue feedback", events=applied)

    def _do_jobs(self) -> None:
        with ExitStack() as stack:
            crew: JobThreads | None = None

            def step() -> None:
                nonlocal crew
                self._heart.turn("jobs")
                if crew is None:
                    crew = stack.enter_context(JobThreads(self._app.jobs.runner, self._stopping.is_set))
                if time.monotonic() >= self._abandoned_due:
                    self._app.corpus.ingest.discard_abandoned()
                    self._abandoned_due = time.monotonic() + ABANDONED_SECONDS
                if not crew.step():
                    self._stopping.wait(JOB_POLL_SECONDS)

            self._repeat_forever("jobs", step)

    def _name(self) -> None:
        self._app.corpus.names.run(self._stopping.is_set, one_thread=True)
        self._stopping.wait(NAMES_SECONDS)

    def _tell_kinds(self) -> None:
        self._app.corpus.kinds.run(self._stopping.is_set)
        self._stopping.wait(KINDS_SECONDS)

    def _measure_levels(self) -> None:
        self._app.retrieval.levels.run(self._stopping.is_set)
        self._stopping.wait(LEVELS_SECONDS)

    def _analyse(self) -> None:
        self._app.maintenance.statistics.run(self._stopping.is_set)
        self._stopping.wait(STATISTICS_SECONDS)

    def _retire(self) -> None:
        retired = self._app.maintenance.retention.run(should_stop=self._stopping.is_set)
        self._stopping.wait(HELD_SECONDS if retired is None else RETENTION_SECONDS)

    def _remove_closed(self) -> None:
        self._app.maintenance.removal.run(self._stopping.is_set)
        self._app.maintenance.closing.run(self._stopping.is_set)
        self._stopping.wait(CLOSING_SECONDS)

    def _maintain_indexes(self) -> None:
        if self._stopping.wait(max(0.0, self._indexes_due - time.monotonic())):
            return
        # Set before the run: one that fails is not tried again at once, as a build takes much of a machine.
        self._indexes_due = time.monotonic() + INDEXES_SECONDS
        self._app.maintenance.indexes.run(should_stop=self._stopping.is_set)

    def _sweep_wing(self, sweep: Callable[[Callable[[], bool]], object]) -> None:
        sweep(self._stopping.is_set)
        self._stopping.wait(WING_SWEEP_SECONDS)
