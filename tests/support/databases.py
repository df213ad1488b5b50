"""Databases of their own on the running Postgres, and applications on them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from uuid import uuid4

import psycopg
from sqlalchemy.engine import make_url

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.providers.embedder import Embedder
from engram.services.maintenance.index_maintenance import IndexMaintenanceService, Thresholds
from engram.storage.schema_revision import migrate
from tests.support.citus import CITUS, open_distributed_beside

LATER_FUNCTIONS = (
    *("max(bytea)", "min(bytea)", "max(record)", "min(record)", "reverse(bytea)", "crc32(bytea)", "crc32c(bytea)"),
    *("array_reverse(anyarray)", "array_sort(anyarray)", "array_sort(anyarray,boolean)", "casefold(text)"),
    *("array_sort(anyarray,boolean,boolean)", "uuidv4()", "uuidv7()", "uuidv7(interval)", "to_bin(integer)"),
    *("to_bin(bigint)", "to_oct(integer)", "to_oct(bigint)", "unicode_assigned(text)", "random(integer,integer)"),
    *("random(bigint,bigint)", "random(numeric,numeric)", "uuid_extract_timestamp(uuid)"),
)
"""Functions of Postgres 17 and 18: the embedded server has them, and the oldest that Engram takes has not."""


@contextmanager
def new_database(url: str, *, copied: bool = False) -> Iterator[str]:
    """The address of a new database beside that of ``url``, dropped at the end of the block.

    Args:
        copied: with all that is in that of ``url``, to which nobody is connected; else it is empty.
    """
    name = f"test_{uuid4().hex}"
    # Its files are copied: to write each page of it to the log as well would take more than ten times as long.
    template = f'TEMPLATE "{make_url(url).database}" STRATEGY FILE_COPY' if copied else ""
    with _connect_beside(url) as connection:
        connection.execute(f'CREATE DATABASE "{name}" {template}')
        try:
            yield make_url(url).set(database=name).render_as_string(hide_password=False)
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextmanager
def open_migrated(addresses: Servers) -> Iterator[Servers]:
    """A new database with the schema in place, and the Redis of ``addresses``."""
    if CITUS is not None:
        with open_distributed_beside(addresses.database_url) as url:
            hide_later_functions(url)
            yield Servers(url, addresses.redis_url)
        return
    template = _template(addresses.database_url, os.environ.get("ENGRAM_EMBEDDING_DIMENSION"))
    with new_database(template, copied=True) as url:
        yield Servers(url, addresses.redis_url)


@cache
def _template(url: str, _dimension: str | None) -> str:
    """A database with the schema in place on the server of ``url``: a copy of it takes less than the migrations."""
    template = make_url(url).set(database=f"template_{uuid4().hex}").render_as_string(hide_password=False)
    with _connect_beside(url) as connection:
        connection.execute(f'CREATE DATABASE "{make_url(template).database}"')
    hide_later_functions(template)
    migrate(template)
    return template


def hide_later_functions(url: str) -> None:
    """Rename the functions of Postgres 17 and 18, so that a statement that Postgres 16 refuses fails."""
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute("SET allow_system_table_mods = on")
        connection.execute(
            "UPDATE pg_proc SET proname = 'later_' || proname WHERE oid::regprocedure::text = ANY(%s)",
            [list(LATER_FUNCTIONS)],
        )


def _connect_beside(url: str) -> "psycopg.Connection[tuple[object, ...]]":
    """A connection to the server of ``url``, but to no database of ours: one that is copied is to be left alone."""
    plain = make_url(url).set(drivername="postgresql", database="postgres").render_as_string(hide_password=False)
    return psycopg.connect(plain, autocommit=True)


def index_all(application: Application) -> None:
    """Give every collection its vector indexes, however small it is."""
    thresholds = Thresholds(dead_share=0.999, dead_rows=10**9)
    assert (
        IndexMaintenanceService(application.database, thresholds, memory_mb=64, exact_search_limit=0).run()
        is not None
    )


@contextmanager
def application_on(
    addresses: Servers, settings: Settings, like: Application, embedder: Embedder | None = None
) -> Iterator[Application]:
    """An application on these servers; its models are those of ``like``, but for ``embedder``."""
    services = Application(settings, addresses, consumer="apart")
    services.models.embedder, services.models.language = embedder or like.models.embedder, like.models.language
    try:
        yield services
    finally:
        services.close()
