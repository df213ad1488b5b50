"""A Citus cluster on this machine: a coordinator and two workers, each a Postgres of its own, for trials and tests.

    python deploy/citus/cluster.py PROGRAMS DATA [PORT]

PROGRAMS is the folder that `build.sh` printed, DATA one for the servers' files, which are made where it is new.
The coordinator listens on PORT (5433), the workers on the next ones, on loopback, and they trust whoever connects.
It prints the DATABASE_URL and runs until Ctrl+C.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg

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
def run_cluster(
    programs: Path, data: Path, ports: Sequence[int], settings: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The address of a coordinator, on the first port, with a database ``engram``; workers are on the others.

    Args:
        programs: the folder of ``postgres`` and ``pg_ctl``, with Citus and pgvector installed.
        data: a folder that the user the servers run as may write to.
        settings: of each server, besides ``SETTINGS``.
    """
    started: list[Path] = []
    is_new = not (data / "node0").exists()
    try:
        for at, port in enumerate(ports):
            started.append(_start(programs, data / f"node{at}", SETTINGS | (settings or {}) | {"port": str(port)}))
        yield make_database(ports, "engram") if is_new else _format_address(ports, "engram")
    finally:
        for node in reversed(started):
            _run(programs / "pg_ctl", "-D", node, "-m", "fast", "stop")


def make_database(ports: Sequence[int], name: str) -> str:
    """Make an empty database on all nodes of the cluster and return its address."""
    for port in ports:
        run_statements(port, f"CREATE DATABASE {name}", database="postgres")
        run_statements(port, "CREATE EXTENSION citus", "CREATE EXTENSION vector", database=name)
    run_statements(
        ports[0],
        f"SELECT citus_set_coordinator_host('127.0.0.1', {ports[0]})",
        *(f"SELECT citus_add_node('127.0.0.1', {port})" for port in ports[1:]),
        database=name,
    )
    return _format_address(ports, name)


def run_statements(port: int, *statements: str, database: str) -> None:
    """Run statements on one node, each by itself."""
    with psycopg.connect(
        host="127.0.0.1", port=port, user="engram", dbname=database, autocommit=True
    ) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def _format_address(ports: Sequence[int], name: str) -> str:
    return f"postgresql://engram@127.0.0.1:{ports[0]}/{name}"


def _start(programs: Path, node: Path, settings: Mapping[str, str]) -> Path:
    if not node.exists():
        _run(programs / "initdb", "-D", node, "-U", "engram", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N")
    options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
    _run(programs / "pg_ctl", "-D", node, "-l", node / "log", "-o", options, "-w", "start")
    return node


def _run(program: Path, *arguments: object) -> None:
    subprocess.run(
        [*RUN_AS, str(program), *map(str, arguments)],
        check=True,
        cwd="/",
        env={"PATH": os.defpath, "LC_MESSAGES": "C"},
        stdout=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl+C is for this process, which stops the servers
    )


def main() -> None:
    """Run the cluster that the command line names."""
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    data, first = Path(sys.argv[2]).resolve(), int(sys.argv[3]) if len(sys.argv) == 4 else 5433
    if not data.exists():
        data.mkdir(parents=True)
        if RUN_AS:
            data.chmod(0o777)
    with run_cluster(Path(sys.argv[1]).resolve(), data, range(first, first + 3)) as url:
        sys.stdout.write(f"export DATABASE_URL={url}\n")
        sys.stdout.flush()
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main()
