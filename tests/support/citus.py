"""A coordinator and workers of Citus on this machine, by programs that were built beside the project."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg

from engram.context import tenancy
from engram.storage import citus_distribution
from engram.storage.database import Database
from engram.storage.schema_revision import migrate

CITUS = os.environ.get("ENGRAM_EVALUATION_CITUS")
"""The folder of Postgres' programs where Citus is installed: tests then run on a cluster of it."""
SETTINGS = {
    "shared_preload_libraries": "citus",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "max_connections": "200",
    "max_prepared_transactions": "200",
    "shared_buffers": "256MB",
    "work_mem": "16MB",
    "random_page_cost": "1.1",
    "jit": "off",
    "timezone": "UTC",
    "citus.shard_count": "8",
    "citus.enable_statistics_collection": "off",
}
RUN_AS = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
"""Postgres refuses to run as root."""


@contextmanager
def cluster(programs: Path, data: Path, *, workers: int = 2, durable: bool = False) -> Iterator[str]:
    """The address of a coordinator with an empty database ``engram``, and as many workers.

    Args:
        programs: the folder of ``postgres`` and ``pg_ctl``, with Citus and pgvector installed.
        data: a new folder that the user the servers run as may write to.
        durable: waits for the disk, as an installation does.
    """
    ports: list[int] = []
    try:
        for at in range(workers + 1):
            ports.append(_start(programs, data / f"node{at}", durable=durable))
        yield _make_database(ports, "engram")
    finally:
        for at in reversed(range(len(ports))):
            _run(programs / "pg_ctl", "-D", data / f"node{at}", "-m", "immediate", "stop")
        shutil.rmtree(data, ignore_errors=True)


@contextmanager
def open_distributed(programs: str) -> Iterator[str]:
    """As ``cluster`` in a folder of its own, with the schema in place and distributed."""
    with tempfile.TemporaryDirectory(prefix="engram-citus-") as folder:
        Path(folder).chmod(0o777)
        with cluster(Path(programs), Path(folder) / "data") as url:
            _distribute(url)
            yield url


@contextmanager
def open_distributed_beside(url: str) -> Iterator[str]:
    """The address of a new database on the cluster of ``url``, with the schema in place and distributed."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT nodeport FROM pg_dist_node ORDER BY groupid").fetchall()
    ports, name = [port for (port,) in rows], f"test_{uuid4().hex}"
    made = _make_database(ports, name)
    try:
        _distribute(made)
        yield made
    finally:
        for port in ports:
            _run_statements(port, f"DROP DATABASE {name} WITH (FORCE)", database="postgres")


def _make_database(ports: list[int], name: str) -> str:
    for port in ports:
        _run_statements(port, f"CREATE DATABASE {name}", database="postgres")
        _run_statements(port, "CREATE EXTENSION citus", "CREATE EXTENSION vector", database=name)
    _run_statements(
        ports[0],
        f"SELECT citus_set_coordinator_host('127.0.0.1', {ports[0]})",
        *(f"SELECT citus_add_node('127.0.0.1', {port})" for port in ports[1:]),
        database=name,
    )
    return f"postgresql://engram@127.0.0.1:{ports[0]}/{name}"


def _distribute(url: str) -> None:
    migrate(url)
    with tenancy.allow_all_tenants(), closing(Database(url)) as database:
        with database.write_long() as writer:
            citus_distribution.distribute(writer, hnsw_ef_search=100)
        with database.write_long() as writer:
            citus_distribution.open_policies(writer)


def _start(programs: Path, folder: Path, *, durable: bool) -> int:
    _run(programs / "initdb", "-D", folder, "-U", "engram", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    settings = SETTINGS | {"port": str(port), "fsync": "on" if durable else "off"}
    options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
    _run(programs / "pg_ctl", "-D", folder, "-l", folder / "log", "-o", options, "-w", "start")
    return port


def _run(program: Path, *arguments: object) -> None:
    subprocess.run(
        [*RUN_AS, str(program), *map(str, arguments)],
        check=True,
        cwd="/",
        env={"PATH": os.defpath, "LC_MESSAGES": "C"},
        stdout=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )


def _run_statements(port: int, *statements: str, database: str) -> None:
    with psycopg.connect(
        host="127.0.0.1", port=port, user="engram", dbname=database, autocommit=True
    ) as connection:
        for statement in statements:
            connection.execute(statement)
