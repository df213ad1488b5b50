"""Connections to Postgres: the only place that opens, commits and rolls back.

A ``Reader`` runs statements that change nothing, each on its own snapshot or all on one; the server enforces it. A
``Writer`` is one transaction: it commits when its block ends and rolls back when the block raises. An
``Administrator`` runs what Postgres refuses inside a transaction, for as long as it takes. Each is lent where a
tenancy is set (``tenancy``), and sees the rows that this lets it see.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any, cast

from psycopg import ClientCursor, Connection, Error
from psycopg.abc import Buffer
from psycopg.sql import SQL, Identifier
from sqlalchemy import Connection as SqlConnection
from sqlalchemy import NullPool, QueuePool, create_engine, make_url

from engram.context import deadline, tenancy
from engram.storage import replica
from engram.storage.column_parameters import place_parameters
from engram.storage.connection_pools import (
    CONNECT_TIMEOUT_SECONDS,
    DISTRIBUTED_KEY,
    PreparedStatement,
    add_driver,
    create_pool,
    leave_transactions,
    raise_as_sqlalchemy,
)
from engram.storage.postgres_errors import explain_errors
from engram.storage.replica import Replica
from engram.storage.row_lookups import bind_to_node, insert_by_statement
from engram.storage.statement_timeouts import limit_statements

Parameters = Mapping[str, Any] | None
Observer = Callable[["Connection[Any]", str, Mapping[str, Any]], object]
"""Takes a connection, a statement that is sent on it, and the statement's parameters by name."""
POOL_TIMEOUT_SECONDS = 10.0
CANCEL_POLL_SECONDS = 0.2
SERVES = "serves"
READER_SETS = "reader_sets"
NODES_SERVE = "nodes serve"
"""Of a connection's ``info``: the settings that the nodes of a cluster need to serve its tenant, by name."""
TENANT_ROLE = "engram_tenant"
"""What a tenant's connections are: row security holds for it, and it sees no keys."""
READER_ROLE = "engram_reader"
"""What the connections of a caller are who sees only passages of some readers: a tenant's, further restricted."""
_SERVE = "SELECT set_config('engram.tenant', %s, false), set_config('role', %s, false)"
# A set of readers never changes, and its id is never given again: what is looked up before the
# transaction begins holds in it, and a set that comes in between is hidden. Without sets everybody sees everything.
_SERVE_READERS = f"""
    SELECT set_config('engram.tenant', %(tenant)s::text, false),
           set_config('engram.reader_sets', coalesce((
               SELECT array_agg(DISTINCT id)::text FROM (
                   SELECT s.id FROM reader_set s JOIN collection c ON c.id = s.collection_id
                   WHERE s.readers && %(names)s::text[] AND c.tenant = %(tenant)s::text
                   UNION ALL
                   SELECT s.id FROM reader_set s JOIN collection c ON c.id = s.collection_id
                   WHERE c.tenant = %(tenant)s::text AND c.name = ANY (%(administers)s::text[])
               ) AS visible
           ), '{{}}'), false),
           set_config('role', CASE WHEN EXISTS (
               SELECT FROM reader_set s JOIN collection c ON c.id = s.collection_id
               WHERE c.tenant = %(tenant)s::text
           ) THEN '{READER_ROLE}' ELSE %(role)s::text END, false)
"""
_SERVE_FOUND_SETS = f"""
    SELECT set_config('engram.tenant', %s, false), set_config('engram.reader_sets', %s, false),
           set_config('role', '{READER_ROLE}', false)
"""
# Of a cluster, which takes no sub-query in what is selected from nothing.
_FIND_SETS_ON_NODES = """
    SELECT s.id FROM reader_set s JOIN collection c ON c.id = s.collection_id
    WHERE c.tenant = %(tenant)s AND (s.readers && %(names)s::text[] OR c.name = ANY (%(administers)s::text[]))
"""
_HAS_SETS_ON_NODES = """
    SELECT s.id FROM reader_set s JOIN collection c ON c.id = s.collection_id WHERE c.tenant = %(tenant)s LIMIT 1
"""
FOUND_SETS_SECONDS = 1.0
"""How long a caller's sets of readers, once looked up, hold within one block of a tenancy. A set that another
request makes meanwhile is hidden for so long."""
_EVERYTHING = tenancy.Visibility(None)

_observers: list[Observer] = []


@contextmanager
def observe_sql(observe: Observer) -> Iterator[None]:
    """For tests and benchmarks: in the block, call ``observe`` before each statement, in the sending thread."""
    _observers.append(observe)
    try:
        yield
    finally:
        _observers.remove(observe)


class Reader:
    """Runs statements that change nothing.

    It sends them by the driver: SQLAlchemy, which lends the connection and ends its transaction, would take as long
    to describe the rows of each as the driver takes to fetch them.
    """

    def __init__(self, connection: SqlConnection) -> None:
        self._connection = connection
        self._driver: Connection[Any] = cast("Any", connection.connection.driver_connection)

    @property
    def reader_sets(self) -> frozenset[int] | None:
        """Sets of people (``reader_set``) whose passages are visible, besides those for all; None: all are."""
        sets: frozenset[int] | None = self._connection.info.get(READER_SETS)
        return sets

    @property
    def distributed(self) -> bool:
        """Whether a coordinator of Citus is asked, which does not run every statement that Postgres does."""
        return bool(self._connection.info.get(DISTRIBUTED_KEY))

    def rows(self, statement: str, parameters: Parameters = None) -> Sequence[Any]:
        """All rows of ``statement``, named tuples, whose parameters are written ``%(name)s``."""
        deadline.check()
        with raise_as_sqlalchemy(self._connection, self._driver, statement):
            return self._send(statement, parameters).fetchall()

    def row(self, statement: str, parameters: Parameters = None) -> Any:
        """The first row, or None."""
        deadline.check()
        with raise_as_sqlalchemy(self._connection, self._driver, statement):
            return self._send(statement, parameters).fetchone()

    def scalar(self, statement: str, parameters: Parameters = None) -> Any:
        """The first column of the first row, or None."""
        row = self.row(statement, parameters)
        return None if row is None else row[0]

    def copy_out(self, statement: str) -> Iterator[Buffer]:
        """Yield what a COPY TO STDOUT gives, row by row."""
        with (
            raise_as_sqlalchemy(self._connection, self._driver, statement),
            self._driver.cursor() as cursor,
            cursor.copy(statement.encode()) as rows,
        ):
            yield from rows

    def _send(self, statement: str, parameters: Parameters) -> PreparedStatement:
        values = parameters or {}
        for observe in _observers:
            observe(self._driver, statement, values)
        if self.distributed:
            statement = bind_to_node(statement)
            if self._connection.info.get(NODES_SERVE):
                statement = insert_by_statement(statement)
        text, names = place_parameters(statement)
        return PreparedStatement(self._driver).execute(text, [values[name] for name in names])


class Writer(Reader):
    """One transaction, or one statement that is a transaction."""

    def execute(self, statement: str, parameters: Parameters = None) -> int:
        """Run a statement that returns no rows; the number of rows it touched, -1 while that is not waited for."""
        with raise_as_sqlalchemy(self._connection, self._driver, statement):
            return self._send(statement, parameters).rowcount

    def copy_in(self, statement: str, pieces: Iterable[Buffer]) -> None:
        """Run a COPY FROM STDIN on what a COPY TO STDOUT gave."""
        with (
            raise_as_sqlalchemy(self._connection, self._driver, statement),
            self._driver.cursor() as cursor,
            cursor.copy(statement.encode()) as rows,
        ):
            for piece in pieces:
                rows.write(piece)

    @contextmanager
    def ahead(self) -> Iterator[None]:
        """Pipeline mode of the driver: statements are sent without waiting for their results.

        A read waits for itself and all before it. So read first, then send what takes long in Postgres, then
        compute. A failed statement raises at a later one, or at the end of the block.
        """
        with raise_as_sqlalchemy(self._connection, self._driver, None), self._driver.pipeline():
            yield


class Administrator(Reader):
    """Runs statements outside any transaction, each for as long as it takes."""

    def execute(self, statement: str) -> None:
        """Run a statement that returns no rows."""
        with raise_as_sqlalchemy(self._connection, self._driver, statement):
            self._send(statement, None)


@dataclass(frozen=True, slots=True)
class PoolUsage:
    """Usage of a connection pool: connections in use, and the most there may be."""

    in_use: int
    size: int


class Database:
    """Two pools onto one Postgres, one of which cannot write, and perhaps one onto a replica of it."""

    def __init__(
        self,
        url: str,
        *,
        pool_size: int = 10,
        statement_timeout_seconds: float = 30.0,
        hnsw_ef_search: int = 100,
        row_security: bool = False,
        replica_url: str | None = None,
        replica_lag_seconds: float = 10.0,
        replica_wait_seconds: float = 0.25,
    ) -> None:
        self._url = url
        self._row_security = row_security
        settings = {
            "statement_timeout": f"{statement_timeout_seconds * 1000:.0f}",
            # Sooner, so that waiting for somebody is told from taking too long oneself.
            "lock_timeout": f"{statement_timeout_seconds * 800:.0f}",
            "idle_in_transaction_session_timeout": "60s",
            "jit": "off",
            # A plan is made for any collection and any number of ids. One made for the values at hand goes by what
            # statistics say of that collection: of one that came since, that it is empty, so that any index seems
            # as good as the one that holds the key, for the look-up of a single row and a foreign key as well.
            "plan_cache_mode": "force_generic_plan",
            # And it outlives the smallness of the table it was made for, which is cheapest read from end to end.
            "enable_seqscan": "off",
            "hnsw.ef_search": str(hnsw_ef_search),
            # Strict order throws away what a later round of the scan finds nearer than an earlier one did, which is
            # much where many collections share an index: whoever needs an order sorts.
            "hnsw.iterative_scan": "relaxed_order",
        }
        pool = {
            "pool_size": pool_size,
            "max_overflow": 0,
            "pool_timeout": POOL_TIMEOUT_SECONDS,
            "pool_use_lifo": True,
        }
        reading = settings | {"default_transaction_read_only": "on"}
        self._writers = create_pool(url, settings, **pool)
        self._single_writers = self._writers.execution_options(isolation_level="AUTOCOMMIT")
        readers = create_pool(url, reading, **pool)
        self._readers = readers.execution_options(isolation_level="AUTOCOMMIT")
        self._snapshots = readers.execution_options(isolation_level="REPEATABLE READ")
        self.replica = (
            None
            if replica_url is None
            else Replica(
                replica_url, url, reading, pool, lag_seconds=replica_lag_seconds, wait_seconds=replica_wait_seconds
            )
        )
        self._locks = create_pool(url, reading, poolclass=NullPool).execution_options(isolation_level="AUTOCOMMIT")
        patient = create_pool(url, settings | {"statement_timeout": "0"}, poolclass=NullPool)
        self._administrators = patient.execution_options(isolation_level="AUTOCOMMIT")
        self._long_writers = patient.execution_options(isolation_level="REPEATABLE READ")

    @contextmanager
    def read(self) -> Iterator[Reader]:
        """Open a connection for reads, on which each statement has its own snapshot.

        It goes to the replica if this context requires a position there; the same holds for ``snapshot``.

        Raises:
            UnavailableError: Postgres cannot be reached or gave up on the statement.
        """
        on = self.replica if replica.get_required_position() is not None else None
        with (
            explain_errors(),
            self._readers.connect() if on is None else on.reader() as connection,
            limit_statements(connection),
        ):
            self._set_visibility(connection)
            with _transaction_on_nodes(connection):
                yield Reader(connection)

    @contextmanager
    def snapshot(self) -> Iterator[Reader]:
        """Open a connection for reads, on which all statements share one snapshot; it locks nothing.

        The server keeps what is deleted meanwhile until the block ends, so it should end within minutes.

        Raises:
            UnavailableError: Postgres cannot be reached or gave up on a statement.
        """
        on = self.replica if replica.get_required_position() is not None else None
        with (
            explain_errors(),
            self._snapshots.connect() if on is None else on.snapshot() as connection,
            limit_statements(connection),
        ):
            self._set_visibility(connection)
            connection.begin()
            _set_on_nodes(connection)
            yield Reader(connection)
            # A rollback has the driver forget its prepared statements, which are then planned anew each time:
            # a third of what a query costs.
            connection.commit()

    @contextmanager
    def write(self) -> Iterator[Writer]:
        """One transaction for the block, committed at its end, rolled back if it raises.

        Raises:
            UnavailableError: Postgres cannot be reached, was lost, or has no room left; nothing was written, or,
                if it was lost just as it committed, all of it.
            NotFoundError: what the rows belong to was deleted meanwhile; nothing was written.
        """
        with explain_errors(writing=True), self._writers.connect() as connection:
            self._set_visibility(connection)
            connection.begin()
            _set_on_nodes(connection)
            yield Writer(connection)
            connection.commit()
            tenancy.get_visibility().reader_sets.clear()  # it may have made some

    @contextmanager
    def write_once(self) -> Iterator[Writer]:
        """A writer for one statement, committed as it ends: a third of the round trips of ``write``.

        Raises:
            UnavailableError, NotFoundError: as ``write``.
        """
        with explain_errors(writing=True), self._single_writers.connect() as connection:
            self._set_visibility(connection)
            with _transaction_on_nodes(connection):
                yield Writer(connection)

    @contextmanager
    def write_long(self, should_stop: Callable[[], bool] = lambda: False) -> Iterator[Writer]:
        """Open a REPEATABLE READ transaction, on its own connection and without a statement timeout.

        For what touches rows that nobody else does: it cannot change what others changed since the block began.
        The server keeps what is deleted meanwhile until the block ends, so it should end within minutes.

        Args:
            should_stop: polled; once true, whatever statement runs in the block is cancelled.

        Raises:
            UnavailableError: as ``write``, or it was told to stop; nothing was written.
        """
        with explain_errors(writing=True), self._long_writers.connect() as connection:
            self._set_visibility(connection)
            driver: Any = connection.connection.driver_connection
            connection.begin()
            _set_on_nodes(connection)
            with _cancel_when(should_stop, driver):
                yield Writer(connection)
            connection.commit()
            tenancy.get_visibility().reader_sets.clear()

    @contextmanager
    def administer(self, should_stop: Callable[[], bool] = lambda: False) -> Iterator[Administrator]:
        """An administrator for the block, on a connection of its own without a statement timeout.

        Args:
            should_stop: polled; once true, whatever statement runs in the block is cancelled.

        Raises:
            UnavailableError: Postgres cannot be reached, has no room left, or was told to stop.
        """
        with explain_errors(), self._administrators.connect() as connection:
            self._set_visibility(connection)
            driver: Any = connection.connection.driver_connection
            with _cancel_when(should_stop, driver):
                yield Administrator(connection)

    @contextmanager
    def hold_lock(self, name: str) -> Iterator[bool]:
        """Try to take the advisory lock ``name`` for the block; yield whether this process has it.

        The lock lives in its own connection, so a killed process lets go at once. The connection is no pooled
        one, so whoever holds a lock cannot starve the block of connections.
        """
        with explain_errors(), self._locks.connect() as connection:
            reader = Reader(connection)
            key = {"name": name}
            is_locked = bool(reader.scalar("SELECT pg_try_advisory_lock(hashtextextended(%(name)s, 0))", key))
            try:
                yield is_locked
            finally:
                if is_locked and not connection.invalidated:
                    reader.scalar("SELECT pg_advisory_unlock(hashtextextended(%(name)s, 0))", key)

    @contextmanager
    def open_for_inspection(self) -> Iterator[SqlConnection]:
        """A connection that cannot write, for tools that compare schemas.

        Raises:
            UnavailableError: Postgres cannot be reached.
        """
        engine = create_engine(add_driver(self._url), poolclass=NullPool)  # results as tools expect them
        with explain_errors(), engine.connect().execution_options(postgresql_readonly=True) as connection:
            yield connection

    def position(self) -> tuple[int, int]:
        """Return the system identifier and the present WAL position in bytes, which covers every commit so far."""
        with self.read() as reader:
            system, end = reader.row(replica.PRIMARY)
        return system, end

    def pools(self) -> Mapping[str, PoolUsage]:
        """Return the connection pools by name."""
        pools = {"write": self._writers.pool, "read": self._readers.pool}
        if self.replica is not None:
            pools["replica"] = self.replica.pool
        return {
            name: PoolUsage(pool.checkedout(), pool.size())
            for name, pool in pools.items()
            if isinstance(pool, QueuePool)
        }

    @property
    def address(self) -> str:
        """Address of the database in words."""
        return describe_address(self._url)

    def _set_visibility(self, connection: SqlConnection) -> None:
        """Set tenant and role of the connection, if they differ from its last use, before its transaction begins.

        They stay set in the pool. For whoever sees only passages of some readers, the sets of readers are looked up
        again after ``FOUND_SETS_SECONDS``, since there may be new ones.

        Raises:
            UnsetTenancyError: no tenancy is set.
        """
        visibility = tenancy.get_visibility()
        if not self._row_security and visibility.readers is None:
            visibility = _EVERYTHING
        is_bound = visibility.readers is not None
        found, found_at = visibility.reader_sets.get(self, ("", -math.inf)) if is_bound else ("", math.inf)
        is_known = time.monotonic() - found_at < FOUND_SETS_SECONDS
        serves = connection.info.get(SERVES, (_EVERYTHING, ""))
        if is_known and serves == (visibility, found):
            return
        role = TENANT_ROLE if self._row_security and visibility.tenant is not None else "none"
        with leave_transactions(connection) as driver:
            connection.info[SERVES] = connection.info[READER_SETS] = connection.info[NODES_SERVE] = None
            if visibility.readers is None:
                with ClientCursor(driver) as cursor:
                    cursor.execute(_SERVE, (visibility.tenant or "", role))
            elif is_known:
                with ClientCursor(driver) as cursor:
                    cursor.execute(_SERVE_FOUND_SETS, (visibility.tenant, found))
            else:
                if serves is None or serves[0].readers is None or serves[0].tenant != visibility.tenant:
                    driver.execute("SET ROLE none")  # as the role of another tenant it would see no set of this one
                values = {"tenant": visibility.tenant, "role": role, **asdict(visibility.readers)}
                encoded = {key: _as_list(value) for key, value in values.items()}
                serve = _serve_by_nodes if connection.info.get(DISTRIBUTED_KEY) else _serve_readers
                found, is_bound = serve(driver, encoded)
                if is_bound:
                    visibility.reader_sets[self] = found, time.monotonic()
            if is_bound:
                connection.info[READER_SETS] = frozenset(map(int, filter(None, found.strip("{}").split(","))))
            if connection.info.get(DISTRIBUTED_KEY) and (is_bound or role != "none"):
                connection.info[NODES_SERVE] = {"engram.tenant": visibility.tenant, "engram.reader_sets": found}
        connection.info[SERVES] = visibility, found

    def close(self) -> None:
        """Close every pooled connection."""
        self._writers.dispose()
        self._readers.dispose()
        if self.replica is not None:
            self.replica.close()


def _serve_readers(driver: Any, caller: Mapping[str, Any]) -> tuple[str, bool]:
    """Have the connection serve a caller; the sets of readers that it sees, and whether there are any."""
    _, found, role = driver.execute(_SERVE_READERS, caller, prepare=True).fetchone()
    return found, role == READER_ROLE


def _serve_by_nodes(driver: Any, caller: Mapping[str, Any]) -> tuple[str, bool]:
    """Serve readers as ``_serve_readers`` does, on the coordinator of a cluster."""
    with ClientCursor(driver) as cursor:
        cursor.execute("SET ROLE none")  # as a caller's role it would find no set on a shard that shows it nothing
        ids = sorted({number for (number,) in cursor.execute(_FIND_SETS_ON_NODES, caller).fetchall()})
        is_bound = bool(ids) or cursor.execute(_HAS_SETS_ON_NODES, caller).fetchone() is not None
        set_ids = "{" + ",".join(map(str, ids)) + "}"
        if is_bound:
            cursor.execute(_SERVE_FOUND_SETS, (caller["tenant"], set_ids))
        else:
            cursor.execute(_SERVE, (caller["tenant"], caller["role"]))
    return set_ids, is_bound


def _set_on_nodes(connection: SqlConnection) -> None:
    """Have the nodes of a cluster serve whom the connection serves, for the transaction that it is in.

    Citus hands on what is set by ``SET LOCAL``, one statement at a time, and nothing else; the role is that of the
    connections that it opens.
    """
    settings = connection.info.get(NODES_SERVE)
    if not settings:
        return
    driver: Any = connection.connection.driver_connection
    with raise_as_sqlalchemy(connection, driver, None), ClientCursor(driver) as cursor:
        for name, value in settings.items():
            cursor.execute(SQL("SET LOCAL {} = {}").format(Identifier(*name.split(".")), value))


@contextmanager
def _transaction_on_nodes(connection: SqlConnection) -> Iterator[None]:
    """One transaction for the block on a connection without, if nodes have to be told whom they serve."""
    if not connection.info.get(NODES_SERVE):
        yield
        return
    driver: Any = connection.connection.driver_connection
    with raise_as_sqlalchemy(connection, driver, None), driver.transaction():
        _set_on_nodes(connection)
        yield


def _as_list(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def describe_address(database_url: str) -> str:
    """Describe where a database is: its name, and its host or the folder of its socket."""
    url = make_url(database_url)
    host = url.host or url.query.get("host") or "the default host"
    return f"database {url.database or 'of the default name'} at {host}"


@contextmanager
def _cancel_when(should_stop: Callable[[], bool], connection: Connection[Any]) -> Iterator[None]:
    over = threading.Event()

    def watch() -> None:
        # Again and again: a request that arrives between two statements cancels neither.
        while not over.wait(CANCEL_POLL_SECONDS):
            if should_stop():
                with suppress(Error):  # the server is gone, as the statement itself will say
                    connection.cancel_safe(timeout=CONNECT_TIMEOUT_SECONDS)

    watcher = threading.Thread(target=watch, name="cancel", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
