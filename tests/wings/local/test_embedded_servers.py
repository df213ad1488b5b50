"""The embedded servers, with the real binaries: who starts, who attaches, what survives, what is left behind."""

import fcntl
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import redis
import sqlalchemy

from engram.context.errors import ConfigurationError, UnavailableError
from engram.wings.local.servers import EmbeddedPostgres, EmbeddedRedis
from engram.wings.local.servers.child_process import User, spawn
from engram.wings.local.servers.postgres import _check_may_enter

OWNER = """
import sys
from pathlib import Path
from engram.wings.local.servers import EmbeddedPostgres, EmbeddedRedis

folder = Path(sys.argv[1])
servers = [EmbeddedPostgres(folder / "postgres"), EmbeddedRedis(folder / "redis")]
for server in servers:
    server.start()
    print(server.attached, server.pid, flush=True)
sys.stdin.readline()
for server in servers:
    server.stop()
"""

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a server as another user")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    return private


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of servers that were started before: to make a cluster takes longer than most tests."""
    private = tmp_path_factory.mktemp("shared") / "private"
    private.mkdir(mode=0o700)
    return private


@pytest.fixture
def postgres(shared: Path) -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(shared / "postgres") as server:
        yield server


def test_embedded_postgres_uses_the_configured_memory(shared: Path) -> None:
    with (
        EmbeddedPostgres(shared / "postgres", memory_mb=48) as server,
        sqlalchemy.create_engine(server.url).connect() as connection,
    ):
        assert connection.exec_driver_sql("SHOW shared_buffers").scalar() == "48MB"


def owner_process(folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", OWNER, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def two_lines(process: "subprocess.Popen[str]") -> list[tuple[bool, int]]:
    """Per server of an owner process: whether it attached, and the server's process id."""
    assert process.stdout is not None
    words = [process.stdout.readline().split() for _ in range(2)]
    return [(attached == "True", int(pid)) for attached, pid in words]


def wait_until_gone(data_directory: Path) -> None:
    """The last process of a server releases its lock."""
    with (data_directory / "server.lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def execute(server: EmbeddedPostgres, statement: str) -> list[tuple[object, ...]]:
    engine = sqlalchemy.create_engine(server.url)
    try:
        with engine.begin() as connection:
            result = connection.execute(sqlalchemy.text(statement))
            return [tuple(row) for row in result] if result.returns_rows else []
    finally:
        engine.dispose()


def permissions(path: Path) -> dict[Path, tuple[int, int, int]]:
    found = {parent: parent.stat() for parent in (path, *path.parents)}
    return {parent: (stat.S_IMODE(of.st_mode), of.st_uid, of.st_gid) for parent, of in found.items()}


def test_postgres_keeps_vectors_over_a_restart_and_leaves_no_trace_outside(folder: Path) -> None:
    before = permissions(folder) | permissions(Path(sys.prefix))
    server = EmbeddedPostgres(folder / "postgres")
    assert server.start() == server.url
    assert not server.attached
    execute(server, "CREATE EXTENSION vector")
    execute(server, "CREATE TABLE point (at vector(2))")
    execute(server, "INSERT INTO point VALUES ('[3,4]')")
    pid = server.pid
    assert pid is not None
    server.stop()
    assert not is_running(pid)
    assert server.pid is None
    server.stop()

    with EmbeddedPostgres(folder / "postgres") as again:
        assert execute(again, "SELECT at <-> '[0,0]' FROM point") == [(5.0,)]
        assert execute(again, "SHOW fsync") == [("on",)]
    assert permissions(folder) | permissions(Path(sys.prefix)) == before
    assert not again.socket_directory.exists() or not list(again.socket_directory.iterdir())


def test_attached_process_can_end_without_stopping_the_servers(shared: Path, postgres: EmbeddedPostgres) -> None:
    with EmbeddedRedis(shared / "redis") as server:
        other = owner_process(shared)
        assert two_lines(other) == [(True, postgres.pid), (True, server.pid)]
        other.communicate("\n")
        assert execute(postgres, "SELECT 1") == [(1,)]
        assert redis.Redis.from_url(server.url).ping()


def test_an_attached_server_is_noticed_when_it_ends(folder: Path) -> None:
    owner = EmbeddedRedis(folder / "redis")
    owner.start()
    other = EmbeddedRedis(folder / "redis")
    other.start()
    assert other.attached
    assert other.is_alive()
    owner.stop()
    assert not other.is_alive()
    other.start()
    assert not other.attached
    other.stop()


def test_a_killed_postmaster_loses_no_committed_row(postgres: EmbeddedPostgres) -> None:
    execute(postgres, "CREATE TABLE fact AS SELECT 42 AS answer")
    idle = psycopg.connect(postgres.url.replace("+psycopg", ""))
    assert postgres.pid is not None
    os.kill(postgres.pid, signal.SIGKILL)
    postgres.start()
    assert execute(postgres, "SELECT answer FROM fact") == [(42,)]
    idle.close()


def test_a_pid_file_whose_id_now_belongs_to_another_program_does_not_block(postgres: EmbeddedPostgres) -> None:
    pid_file = postgres.data_directory / "cluster" / "postmaster.pid"
    assert postgres.pid is not None
    os.kill(postgres.pid, signal.SIGKILL)
    wait_until_gone(postgres.data_directory)
    stranger = subprocess.Popen(["sleep", "600"])
    try:
        lines = pid_file.read_text().splitlines()
        pid_file.write_text("\n".join([str(stranger.pid), *lines[1:], ""]))
        postgres.start()
        assert execute(postgres, "SELECT 1") == [(1,)]
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_server_that_cannot_start_says_why(postgres: EmbeddedPostgres) -> None:
    postgres.stop()
    configuration = postgres.data_directory / "cluster" / "postgresql.conf"
    right = configuration.read_text()
    configuration.write_text(f"{right}\nnonsense = 'on'\n")
    with pytest.raises(UnavailableError, match='unrecognized configuration parameter "nonsense"'):
        postgres.start()
    wait_until_gone(postgres.data_directory)
    configuration.write_text(right)


def test_second_starter_attaches_to_the_first_ones_server(folder: Path) -> None:
    starters = [owner_process(folder) for _ in range(2)]
    found = [two_lines(starter) for starter in starters]
    for first, second in zip(*found, strict=True):
        assert first[1] == second[1]
        assert {first[0], second[0]} == {False, True}
    for starter in starters:
        starter.communicate("\n")
    assert not any(is_running(pid) for _, pid in found[0])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the parent-death signal is Linux's")
def test_servers_end_with_an_owner_that_is_killed(shared: Path) -> None:
    owner = owner_process(shared)
    two_lines(owner)
    owner.kill()
    owner.communicate()
    wait_until_gone(shared / "postgres")
    wait_until_gone(shared / "redis")
    with EmbeddedPostgres(shared / "postgres") as server:
        assert not server.attached


def test_redis_keeps_its_data_and_outlives_the_thread_that_started_it(folder: Path) -> None:
    server = EmbeddedRedis(folder / "redis")
    starter = threading.Thread(target=server.start)
    starter.start()
    starter.join()
    client = redis.Redis.from_url(server.url)
    client.xadd("stream", {"event": "7"})
    assert client.config_get("append*")["appendfsync"] == "everysec"
    server.stop()
    with server:
        assert client.xlen("stream") == 1
    client.close()


@pytest.mark.parametrize("name", ["long-" + 120 * "x", "with a space, and a comma"])
def test_paths_that_no_socket_can_have(folder: Path, name: str) -> None:
    with EmbeddedPostgres(folder / name / "pg") as postgres, EmbeddedRedis(folder / name / "redis") as server:
        assert execute(postgres, "SHOW data_directory") == [(str(folder / name / "pg" / "cluster"),)]
        assert redis.Redis.from_url(server.url).ping()
        assert stat.S_IMODE(server.socket_directory.stat().st_mode) == 0o700
    assert not postgres.socket_directory.exists()
    assert not server.socket_directory.exists()


def test_a_socket_directory_open_to_others_is_refused(folder: Path) -> None:
    server = EmbeddedRedis(folder / ("x" * 120))
    server.socket_directory.mkdir()
    try:
        server.socket_directory.chmod(0o777)
        with pytest.raises(ConfigurationError, match="not a private directory"):
            server.start()
    finally:
        server.socket_directory.rmdir()


def test_waiting_for_another_starter_can_be_interrupted(folder: Path) -> None:
    server = EmbeddedRedis(folder / "redis", interrupted=lambda: True)
    server.data_directory.mkdir()
    with (server.data_directory / "server.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UnavailableError, match="interrupted"):
            server.start()
    assert server.pid is None


@needs_root
def test_an_unknown_user_is_named(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match="no-such-user"):
        EmbeddedPostgres(folder / "postgres", run_as="no-such-user").start()


@needs_root
def test_a_folder_that_postgres_may_not_enter_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with pytest.raises(ConfigurationError, match=rf"'nobody', who may not enter {tmp_path}.*chmod o\+x"):
        _check_may_enter(tmp_path, User(65_534, 65_534), "nobody")
    _check_may_enter(tmp_path, User(tmp_path.stat().st_uid, 65_534), "its owner")


SUPERUSER = "import psycopg, sys; psycopg.connect(host=sys.argv[1], port=5432, user='engram', dbname='postgres')"


def connects_as_nobody(socket_directory: Path) -> bool:
    """Whether a process of the server's user gets in without a password."""
    process = spawn(
        [sys.executable, "-c", SUPERUSER, str(socket_directory)],
        death_signal=signal.SIGTERM,
        user=User(65534, 65534),
        reach=socket_directory,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=Path("/"),
    )
    return process.wait() == 0


@needs_root
def test_a_process_of_the_servers_user_needs_the_password(postgres: EmbeddedPostgres) -> None:
    data = postgres.data_directory
    assert stat.S_IMODE((data / "password").stat().st_mode) == 0o600
    assert (data / "password").stat().st_uid == 0
    assert not (data / "password.new").exists()
    assert execute(postgres, "SELECT current_user") == [("engram",)]
    assert not connects_as_nobody(postgres.socket_directory)


@needs_root
def test_data_without_a_password_are_given_one(folder: Path) -> None:
    data = folder / "postgres"
    data.mkdir(mode=0o700)
    os.chown(data, 65534, 65534)  # data of the server's own user need none
    with EmbeddedPostgres(data) as postgres:
        execute(postgres, "CREATE TABLE kept (at integer)")
        assert connects_as_nobody(postgres.socket_directory)
    os.chown(data, 0, 0)
    with EmbeddedPostgres(folder / "postgres") as postgres:
        assert execute(postgres, "SELECT count(*) FROM kept") == [(0,)]
        assert not connects_as_nobody(postgres.socket_directory)


@needs_root
def test_an_ordinary_user_starts_and_stops_them(folder: Path) -> None:
    """``nobody`` runs this interpreter, wherever it is installed, and owns only the data."""
    home = folder / "home"
    home.mkdir(mode=0o700)
    os.chown(home, 65534, 65534)
    reading, writing = os.pipe()
    script = OWNER.replace("sys.stdin.readline()", "print(folder.owner())")
    owner = spawn(
        [sys.executable, "-c", script, str(home)],
        death_signal=signal.SIGTERM,
        output=writing,
        user=User(65534, 65534),
        reach=home,
        cwd=Path("/"),
    )
    os.close(writing)
    with open(reading) as output:
        lines = output.read().splitlines()
    assert owner.wait() == 0, lines
    assert [line.split()[0] for line in lines[:2]] == ["False", "False"]
    assert (home / "postgres" / "cluster").stat().st_uid == 65534
    wait_until_gone(home / "postgres")
