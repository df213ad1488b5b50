"""A coordinator and workers of Citus on this machine, by programs that were built beside the project."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from engram.storage import citus_distribution
from engram.storage.database import Database
from engram.storage.schema_revision import migrate

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
        for port in ports:
            _run_statements(port, "CREATE DATABASE engram", database="postgres")
            _run_statements(port, "CREATE EXTENSION citus", "CREATE EXTENSION vector")
        _run_statements(
            ports[0],
            f"SELECT citus_set_coordinator_host('127.0.0.1', {ports[0]})",
            *(f"SELECT citus_add_node('127.0.0.1', {port})" for port in ports[1:]),
        )
        yield f"postgresql://engram@127.0.0.1:{ports[0]}/engram"
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
            migrate(url)
            database = Database(url)
            with database.write_long() as writer:
                citus_distribution.distribute(writer, hnsw_ef_search=100)
            database.close()
            yield url


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


def _run_statements(port: int, *statements: str, database: str = "engram") -> None:
    with psycopg.connect(
        host="127.0.0.1", port=port, user="engram", dbname=database, autocommit=True
    ) as connection:
        for statement in statements:
            connection.execute(statement)
