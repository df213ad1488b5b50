"""Pools of connections to Postgres: how one is opened, what is set on it, when it is tried before it is used."""

import math
import select
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from pgvector.psycopg.halfvec import register_halfvec_info
from pgvector.psycopg.vector import register_vector_info
from psycopg import ClientCursor, Connection, Error, RawCursor, errors, pq
from psycopg.errors import Diagnostic
from psycopg.rows import namedtuple_row
from psycopg.sql import SQL
from psycopg.types import TypeInfo
from sqlalchemy import Connection as SqlConnection
from sqlalchemy import Engine, create_engine, event, exc

from engram.context.errors import ConfigurationError, NotFoundError
from engram.storage import column_parameters
from engram.storage.postgres_errors import DELETED_MEANWHILE, NOT_MIGRATED

CONNECT_TIMEOUT_SECONDS = 5
PING_AFTER_SECONDS = 1.0
"""A pooled connection that was idle for longer is tried before it is used. Not every one: a query takes ten."""
USED_AT_KEY = "used_at"
DISTRIBUTED_KEY = "distributed"
"""Of a connection's ``info``: whether it leads to a coordinator of Citus."""
ORPHANS_KEY = "orphans"
"""Of such a connection's ``info``: whether it was warned that rows would refer to what is not there."""
_OF_A_COORDINATOR = """
    SELECT set_config('plan_cache_mode', 'force_custom_plan', false),
           set_config('citus.multi_shard_modify_mode', 'sequential', false),
           set_config('citus.propagate_set_commands', 'local', false)
    WHERE to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL
"""
"""Citus has to know the collection, and so the node, when it plans; the node's own plan is for any. And what is
written to several tables goes to a node by one connection, which alone sees it before the end. What is set for a
transaction holds on its nodes as well."""
_VECTOR_TYPES = """
    SELECT typname, oid, typarray FROM pg_type WHERE oid IN (to_regtype('vector'), to_regtype('halfvec'))
"""


class PreparedStatement(RawCursor[Any]):
    """One statement, with parameters by their places (see ``column_parameters.place_parameters``); its rows are
    named tuples.

    Results come in binary: parsing numbers and vectors from text costs more than the statements.
    """

    def __init__(self, connection: Connection[Any]) -> None:
        super().__init__(connection, row_factory=namedtuple_row)
        self.format = pq.Format.BINARY


def create_pool(url: str, settings: Mapping[str, str], **pool: Any) -> Engine:
    """Connections to ``url`` with ``settings`` in force; ``pool`` is what SQLAlchemy takes for its pool."""
    engine = create_engine(
        add_driver(url),
        connect_args={"connect_timeout": CONNECT_TIMEOUT_SECONDS},
        use_native_hstore=False,  # nor looked for
        **pool,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        driver: Connection[Any] = (
            connection.driver_connection if hasattr(connection, "driver_connection") else connection
        )
        autocommit, driver.autocommit = driver.autocommit, True
        with ClientCursor(driver) as cursor:
            assignments = SQL(", ").join(
                SQL("set_config({}, {}, false)").format(*item) for item in settings.items()
            )
            cursor.execute(SQL("SELECT {}").format(assignments))
            record.info[DISTRIBUTED_KEY] = cursor.execute(_OF_A_COORDINATOR).rowcount > 0
            if record.info[DISTRIBUTED_KEY]:
                driver.add_notice_handler(partial(_note_orphans, record.info))
            types = {row[0]: TypeInfo(*row) for row in cursor.execute(_VECTOR_TYPES)}
        if len(types) < 2:
            raise ConfigurationError(NOT_MIGRATED)
        # pgvector asks for four types, each in a transaction of its own: a third of what a connection costs.
        register_vector_info(driver, types["vector"])
        register_halfvec_info(driver, types["halfvec"])
        column_parameters.register(driver)
        driver.autocommit = autocommit

    @event.listens_for(engine, "handle_error")
    def name_cause(context: Any) -> None:
        # What a node refuses as it commits Citus warns of, and then fails without a cause.
        failed = str(context.original_exception).startswith("could not commit transaction for shard")
        if failed and context.connection.info.pop(ORPHANS_KEY, False):
            raise NotFoundError(DELETED_MEANWHILE) from context.original_exception

    @event.listens_for(engine, "checkin")
    def note(_connection: Any, record: Any) -> None:
        record.info[USED_AT_KEY] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def revive(connection: Any, record: Any, _proxy: Any) -> None:
        idle = time.monotonic() - record.info.get(USED_AT_KEY, math.inf)
        if idle > PING_AFTER_SECONDS or _has_news(connection):
            try:
                engine.dialect.do_ping(connection)
            except Error as error:
                raise exc.DisconnectionError from error  # has the pool open another one

    return engine


@contextmanager
def raise_as_sqlalchemy(
    connection: SqlConnection, driver: "Connection[Any]", statement: str | None
) -> Iterator[None]:
    """Raise the driver's errors in the block as SQLAlchemy's, so that lost connections are noticed."""
    try:
        yield
    except Error as error:
        lost = driver.closed
        if lost:
            connection.invalidate(error)
        raise exc.DBAPIError.instance(statement, None, error, Error, connection_invalidated=lost) from error


@contextmanager
def leave_transactions(connection: SqlConnection) -> Iterator[Any]:
    """Lend the driver's connection outside any transaction.

    If the block raises, the connection is closed and not used again: it may be without transactions, or another's.
    """
    driver: Any = connection.connection.driver_connection
    with raise_as_sqlalchemy(connection, driver, None):
        try:
            autocommit, driver.autocommit = driver.autocommit, True
            yield driver
            driver.autocommit = autocommit
        except BaseException as error:
            connection.invalidate(error)
            raise


def _note_orphans(info: dict[str, Any], notice: Diagnostic) -> None:
    if notice.sqlstate == errors.ForeignKeyViolation.sqlstate:
        info[ORPHANS_KEY] = True


def _has_news(connection: Connection[Any]) -> bool:
    """Whether something came in on a connection that was asked nothing: most likely that the server ends it."""
    poll = select.poll()
    poll.register(connection.pgconn.socket, select.POLLIN)
    return bool(poll.poll(0))


def add_driver(url: str) -> str:
    """The usual spellings of a Postgres URL, with the driver that Engram brings."""
    scheme, separator, rest = url.partition("://")
    if not separator or scheme not in {"postgres", "postgresql", "postgresql+psycopg"}:
        raise ConfigurationError("DATABASE_URL must begin with postgresql://")
    return f"postgresql+psycopg://{rest}"
