"""A streaming replica to read on: how far it is, whether it can be relied on, and connections that are far enough.

How far behind it is, is measured against the primary itself: every half second a thread asks the primary for the
end of its log and the replica for how much of it is replayed. Clocks do not come into it, nor whether anything is
written, and a replica that stands still grows old although it answers.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

import structlog
from psycopg import ClientCursor
from sqlalchemy import Connection, Engine, Pool, exc

from engram.context.errors import UnavailableError
from engram.storage.connection_pools import create_pool, leave_transactions

log = structlog.get_logger(__name__)

Standing = Literal["ok", "stale", "unreachable", "not a replica"]
LOOK_SECONDS = 0.5
LOOK_TIMEOUT_MS = 2_000
POLL_SECONDS = 0.003
SAMPLES = 1_000
REPLAYED = "replayed"
PRIMARY = "SELECT system_identifier, (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint FROM pg_control_system()"
STANDBY = """
    SELECT system_identifier, pg_is_in_recovery(), (pg_last_wal_replay_lsn() - '0/0'::pg_lsn)::bigint
    FROM pg_control_system()
    """
_position: ContextVar[int | None] = ContextVar("replica_position", default=None)


class ReplicaError(UnavailableError):
    """The replica cannot be read on, or not yet: the primary can."""


class BehindError(ReplicaError):
    """The replica has not replayed what has to be seen."""


@dataclass(frozen=True, slots=True)
class ReplicaPosition:
    """Last known position of the replica; everything older than ``lag_seconds`` is there, None if unknown."""

    standing: Standing
    lag_seconds: float | None


def get_required_position() -> int | None:
    """Up to which position of the log reads are to see in this context; None: they go to the primary."""
    return _position.get()


@contextmanager
def require_position(position: int) -> Iterator[None]:
    """Read in the block on the replica, once it has replayed the log up to ``position`` (bytes)."""
    before = _position.set(position)
    try:
        yield
    finally:
        _position.reset(before)


class Replica:
    """Connections to it, and a thread that watches it from ``start`` on; before, it is not relied on."""

    def __init__(
        self,
        url: str,
        primary_url: str,
        settings: Mapping[str, str],
        pool: Mapping[str, Any],
        *,
        lag_seconds: float,
        wait_seconds: float,
    ) -> None:
        """
        Args:
            settings: of every connection.
            lag_seconds: a replica that is further behind is not read on.
            wait_seconds: how long a read waits for what it has to see.
        """
        self._lag_seconds = lag_seconds
        self._wait_seconds = wait_seconds
        readers = create_pool(url, settings, **pool)
        self._readers = readers.execution_options(isolation_level="AUTOCOMMIT")
        self._snapshots = readers.execution_options(isolation_level="REPEATABLE READ")
        quick = dict(settings) | {"statement_timeout": str(LOOK_TIMEOUT_MS)}
        one = {"pool_size": 1, "max_overflow": 0, "pool_timeout": 1.0}
        self._watching = tuple(
            create_pool(place, quick, **one).execution_options(isolation_level="AUTOCOMMIT")
            for place in (primary_url, url)
        )
        self._samples: deque[tuple[float, int]] = deque(maxlen=SAMPLES)
        self._fresh_at: float | None = None
        self._standing: Standing = "stale"
        self.system: int | None = None
        """Which database cluster the primary is: positions of another one mean nothing."""
        self._over = threading.Event()
        self._looking = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Look now, and every half second from now on."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="replica", daemon=True)
            self._thread.start()

    def get_last_position(self) -> ReplicaPosition:
        """Last known position, with its lag as of now."""
        lag = None if self._fresh_at is None else time.monotonic() - self._fresh_at
        if self._standing != "ok":
            return ReplicaPosition(self._standing, lag)
        return ReplicaPosition("ok" if lag is not None and lag <= self._lag_seconds else "stale", lag)

    @property
    def usable(self) -> bool:
        """Whether reads may go there."""
        return self.get_last_position().standing == "ok"

    def look(self) -> ReplicaPosition:
        """Ask both servers."""
        with self._looking:
            before = self.get_last_position().standing
            try:
                self._standing = self._look()
            except exc.SQLAlchemyError as error:
                self._standing = "unreachable"
                if before != "unreachable":
                    log.warning("replica out of reach", error=str(error).splitlines()[0])
            position = self.get_last_position()
        if position.standing != before:
            log.info("replica", standing=position.standing, before=before, lag_seconds=position.lag_seconds)
        return position

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A connection for one snapshot, which has what is wanted.

        Raises:
            ReplicaError: it has not, in time, or is no replica any more.
        """
        with self._open_connection(self._snapshots) as connection:
            yield connection

    @contextmanager
    def reader(self) -> Iterator[Connection]:
        """Open a connection as ``snapshot`` does, for statements with a snapshot each."""
        with self._open_connection(self._readers) as connection:
            yield connection

    @property
    def pool(self) -> Pool:
        """Pool of the connections lent to readers."""
        return self._readers.pool

    def close(self) -> None:
        """Watch no more, and close every connection."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        for engine in (self._readers, *self._watching):
            engine.dispose()

    @contextmanager
    def _open_connection(self, engine: Engine) -> Iterator[Connection]:
        with engine.connect() as connection:
            self._await(connection, get_required_position() or 0)
            yield connection

    def _await(self, connection: Connection, position: int) -> None:
        """Wait until the server behind the connection has replayed up to there.

        Before a snapshot is taken: one that was taken before does not see what is replayed after. What a server
        has replayed it has for good, so that most connections are asked nothing.
        """
        if connection.info.get(REPLAYED, -1) >= position:
            return
        with leave_transactions(connection) as driver:
            connection.info[REPLAYED] = self._await_replay(driver, position)

    def _await_replay(self, driver: Any, position: int) -> int:
        """Wait until the server has replayed up to the position, and return how far it is."""
        ends = time.monotonic() + self._wait_seconds
        with ClientCursor(driver) as cursor:
            while True:
                row = cursor.execute(STANDBY).fetchone()
                if row is None or not row[1]:
                    raise ReplicaError("READ_DATABASE_URL is no replica, or none any more.")
                replayed = int(row[2])
                if replayed >= position:
                    return replayed
                if time.monotonic() >= ends:
                    raise BehindError(f"The replica is {position - replayed} bytes of log behind.")
                time.sleep(POLL_SECONDS)

    def _watch(self) -> None:
        while True:
            self.look()
            if self._over.wait(LOOK_SECONDS):
                return

    def _look(self) -> Standing:
        primary, replica = self._watching
        asked_at = time.monotonic()
        try:
            with primary.connect() as connection:
                self.system, end = connection.exec_driver_sql(PRIMARY).one()
            self._samples.append((asked_at, end))
        except exc.SQLAlchemyError as error:  # then nothing is known of how far there is to go
            log.warning("primary not asked for its position", error=str(error).splitlines()[0])
        with replica.connect() as connection:
            system, standby, replayed = connection.exec_driver_sql(STANDBY).one()
        if not standby or system != self.system:
            return "not a replica"
        while self._samples and self._samples[0][1] <= replayed:
            self._fresh_at = self._samples.popleft()[0]
        return "ok"
