"""Python programs in processes of their own that need not import Engram first: they are forked from one that has.

Importing takes longer than what most commands do. Arguments, environment, working directory, output, exit code and
signals are as if Python had been started; its end is not: nothing is taken apart, so what was not closed is not
written out. ``tests/test_documented_commands.py`` starts and ends a real one.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from struct import Struct
from typing import IO, NoReturn

from tests.support.encoder import remember_vectors
from tests.support.environment import WINGS

ROOT = Path(__file__).resolve().parents[2]
WIDE = {"COLUMNS": "300"}
"""Consoles are as wide as they were told to be when they were imported."""
_NUMBER = Struct("i")


class ForkedProcess:
    """The part of ``subprocess.Popen`` that tests need."""

    def __init__(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdout: IO[bytes], stderr: IO[bytes]
    ) -> None:
        """``arguments``: a script, "-m" and a module, or "-c" and a program, and what it is told."""
        self.arguments = list(arguments)
        self.returncode: int | None = None
        self._reports, theirs = socket.socketpair()
        order = {"arguments": self.arguments, "cwd": str(cwd), "env": dict(env)}
        with theirs, tempfile.TemporaryFile() as told:
            told.write(json.dumps(order).encode())
            told.seek(0)
            socket.send_fds(open_server(), [b"."], [file.fileno() for file in (told, theirs, stdout, stderr)])
        self.pid = self._report()

    def poll(self) -> int | None:
        """The exit code, -n after signal n; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end."""
        if self.returncode is None:
            self._reports.settimeout(timeout)
            try:
                self.returncode = self._report()
            except (BlockingIOError, TimeoutError):
                raise subprocess.TimeoutExpired(self.arguments, timeout or 0.0) from None
            self._reports.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _report(self) -> int:
        """The next thing said of it: its id, then how it ended."""
        said = self._reports.recv(_NUMBER.size)
        assert said, "the server of forks has ended"
        (number,) = _NUMBER.unpack(said)
        return int(number)


def run(
    arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float
) -> "subprocess.CompletedProcess[str]":
    """As ``subprocess.run``, the output captured."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = ForkedProcess(arguments, cwd=cwd, env=env, stdout=out, stderr=err)
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        for file in (out, err):
            file.seek(0)
        return subprocess.CompletedProcess(process.arguments, code, out.read().decode(), err.read().decode())


@cache
def open_server() -> socket.socket:
    """Start the server, which ends with this process, and return the socket that takes orders."""
    ours, theirs = socket.socketpair()
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-m", "tests.support.forks"],
            cwd=ROOT,
            env={**os.environ, **WIDE, "PYTHONPATH": str(ROOT)},
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
        )
    atexit.register(server.wait)
    atexit.register(ours.close)  # first
    return ours


def _serve() -> list[str]:
    """Fork for each order; returns in a forked process, and with what it is to run."""
    gc.disable()  # nothing of all this is garbage
    import httpcore  # noqa: F401  # which clients import when they are made
    import onnxruntime  # noqa: F401

    import engram.cli
    import engram.runtime.worker
    from engram.composition.container import Application, Servers
    from engram.config.settings import Settings
    from engram.providers.language.language_detection import load_identifier
    from engram.providers.language.spacy_pipeline import torch_hidden
    from engram.runtime.api_process import create_app
    from engram.wings.importing.conversion.converter import Converter
    from engram.wings.importing.conversion.import_limits import ConversionLimits

    with torch_hidden():
        import spacy  # noqa: F401

    engram.cli.command()
    settings = Settings(_env_file=None, wings=WINGS)
    # What the first application of a process imports and reads takes longer than the rest of its start.
    first = Application(settings, Servers("postgresql+psycopg://127.0.0.1:1/none", "redis://127.0.0.1:1/0"))
    create_app(first)
    first.models.language.analyse_question("Where was Marie Curie born?")
    load_identifier()
    with Converter(ConversionLimits()) as converter:  # starts the template, which all commands use
        converter.convert("a.txt", b"Text.")
    gc.enable()
    gc.freeze()  # else each process copies all of this when it looks for garbage
    with socket.socket(fileno=os.dup(0)) as orders:
        return _become(*_fork_for_each(orders))


def _fork_for_each(orders: socket.socket) -> tuple[int, int, int]:
    """Fork a process for each order, and say its id and how it ended; returns in such a process only.

    A process between, which would wait for it, takes as long to fork and to end as this one.
    """
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waking)
    running: dict[int, int] = {}
    while True:
        readable, _, _ = select.select([orders, woken], [], [])
        if woken in readable:
            os.read(woken, 4096)
            _report_ends(running)
        if orders not in readable:
            continue
        _, descriptors, _, _ = socket.recv_fds(orders, 1, 4)
        if not descriptors:
            os._exit(0)
        told, reports, out, err = descriptors
        if (child := os.fork()) == 0:
            break
        running[child] = reports
        with suppress(BrokenPipeError):
            os.write(reports, _NUMBER.pack(child))
        for descriptor in (told, out, err):
            os.close(descriptor)
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for descriptor in (woken, waking, reports, *running.values()):
        os.close(descriptor)
    return told, out, err


def _report_ends(running: dict[int, int]) -> None:
    """Say how the processes ended that have ended."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if (reports := running.pop(ended[0], None)) is not None:
                with suppress(BrokenPipeError):
                    os.write(reports, _NUMBER.pack(os.waitstatus_to_exitcode(ended[1])))
                os.close(reports)


def _become(told: int, out: int, err: int) -> list[str]:
    """Make this process the one that was ordered; return what it is to run."""
    with open(told, "rb") as file:
        order = json.load(file)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for place, descriptor in enumerate((nothing, out, err)):
        os.dup2(descriptor, place)
    for descriptor in (nothing, out, err):
        os.close(descriptor)
    # A shell has what it runs in the background ignore Ctrl-C; the command is as if somebody sat before it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    for variable in [name for name in os.environ if ":" in name]:  # of a constant: MODULE:NAME
        module, _, name = variable.partition(":")
        setattr(importlib.import_module(module), name, json.loads(os.environ.pop(variable)))
    remember_vectors()
    arguments: list[str] = order["arguments"]
    return arguments


def run_program(arguments: Sequence[str]) -> int:
    """Run what ``ForkedProcess`` takes; its exit code. Whatever it raises is not left to Python's own end."""
    sys.argv = list(arguments)
    try:
        if sys.argv[0] == "-m":
            del sys.argv[0]
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        elif sys.argv[0] == "-c":
            exec(compile(sys.argv.pop(1), "<string>", "exec"), {"__name__": "__main__"})
        else:
            runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as end:
        if isinstance(end.code, int | None):
            return end.code or 0
        print(end.code, file=sys.stderr)  # noqa: T201 - as Python does
        return 1
    except Exception:  # noqa: BLE001 - its traceback is printed, as Python does
        sys.excepthook(*sys.exc_info())  # type: ignore[arg-type]
        return 1
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return 0


def end(code: int) -> NoReturn:
    """End as Python does, except that nothing is taken apart first: that would copy all that was imported."""
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001 - a program's end has no public name
    atexit._run_exitfuncs()  # noqa: SLF001 - as above
    for stream in (sys.stdout, sys.stderr):
        with suppress(ValueError):  # it was closed
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    end(run_program(_serve()))
