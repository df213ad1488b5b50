"""Tests in several processes, forked once all are imported: to import them takes as long as hundreds of tests.

A file is one process's work, so that what a module sets up is set up once, and so are all files that import torch,
which takes ten seconds. Each process takes the next batch, has session fixtures of its own, and sends its reports
to the one that forked it.
"""

import atexit
import os
import struct
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, pairwise
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, cast

import pytest
from _pytest.tmpdir import TempPathFactory

PROCESS = "TESTING_PROCESS"
"""Variable with the number of a process, from 0."""
_NUMBER = struct.Struct("i")
Batches = Sequence[Sequence[pytest.Item]]


def run_forked(session: pytest.Session, processes: int) -> None:
    """Run the tests of a session in so many processes, and report what they report."""
    batches: dict[str, list[pytest.Item]] = {}
    for item in session.items:
        batches.setdefault("torch" if item.get_closest_marker("torch") else _find_file(item), []).append(item)
    turns, next_turn = os.pipe()
    for number in range(len(batches)):
        os.write(next_turn, _NUMBER.pack(number))  # all of them fit
    os.close(next_turn)
    capturing = session.config.pluginmanager.getplugin("capturemanager")
    capturing.suspend_global_capture(in_=True)
    folder = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # noqa: SLF001
    running: dict[Connection, int] = {}
    for number in range(processes):
        reports, sending = Pipe(duplex=False)
        if (process := os.fork()) == 0:
            for other in (*running, reports):
                other.close()
            # Its files are the first process's. They stay open, as modules hold the streams of their import.
            _first_capture, capturing._global_capturing = capturing._global_capturing, None  # noqa: SLF001
            capturing.start_global_capturing()
            os.environ[PROCESS] = str(number)
            session.config.option.basetemp = str(folder / f"process-{number}")
            _run_child(session, sending, _take_batches([*batches.values()], turns))
        sending.close()
        running[reports] = process
    os.close(turns)
    capturing.resume_global_capture()
    try:
        _report(session, running)
    finally:
        for reports, process in running.items():
            reports.close()
            os.waitpid(process, 0)


def _find_file(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def _take_batches(batches: Batches, turns: int) -> Iterator[pytest.Item]:
    while turn := os.read(turns, _NUMBER.size):
        yield from batches[_NUMBER.unpack(turn)[0]]


def _run_child(session: pytest.Session, reports: Connection, items: Iterator[pytest.Item]) -> None:
    """Run tests in a forked process, which ends here."""
    atexit._clear()  # noqa: SLF001 - what the first process is to do at its end
    status = 1
    try:
        config = session.config
        config._tmp_path_factory = TempPathFactory.from_config(config, _ispytest=True)  # type: ignore[attr-defined]  # noqa: SLF001
        # Silent, and not gone: a timeout writes to it before it fails its test.
        config.get_terminal_writer()._file = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, SLF001
        config.pluginmanager.register(_Sender(config, reports.send))
        try:
            for item, following in pairwise(chain(items, (None,))):
                config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        finally:
            session._setupstate.teardown_exact(None)  # noqa: SLF001 - after an interrupt
        atexit._run_exitfuncs()  # noqa: SLF001
        status = 0
    except BaseException:  # noqa: BLE001 - it must not return into the loop of the first process
        traceback.print_exc()
    finally:
        os._exit(status)


class _Sender:
    """Sends what happens in a forked process to the first one."""

    def __init__(self, config: pytest.Config, send: Callable[[Any], None]) -> None:
        self._config, self._send = config, send

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        self._send(("begun", (nodeid, location)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._send(("report", self._config.hook.pytest_report_to_serializable(config=self._config, report=report)))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        message = f"{warning_message.category.__name__}: {warning_message.message}"
        self._send(("warning", (message, warning_message.filename, warning_message.lineno, when, nodeid)))


def _report(session: pytest.Session, running: dict[Connection, int]) -> None:
    """Report what the processes send until all have ended; one that ends too early is a failure of its test."""
    hook, terminal = session.config.hook, session.config.pluginmanager.getplugin("terminalreporter")
    last: dict[Connection, tuple[str, Any]] = {}
    begun = 0
    while running:
        for reports in cast(list[Connection], wait(list(running))):
            try:
                kind, sent = reports.recv()
            except EOFError:
                _, status = os.waitpid(running.pop(reports), 0)
                if status:
                    report = _describe_end(status, *last.get(reports, ("tests", None)))
                    hook.pytest_runtest_logreport(report=report)
                continue
            if kind == "begun":
                last[reports] = sent
                begun += 1
            elif kind == "report":
                report = hook.pytest_report_from_serializable(config=session.config, data=sent)
                hook.pytest_runtest_logreport(report=report)
            else:
                text, filename, line, when, nodeid = sent
                message = warnings.WarningMessage(UserWarning(text), UserWarning, filename, line)
                hook.pytest_warning_recorded.call_historic(
                    kwargs={"warning_message": message, "when": when, "nodeid": nodeid, "location": None}
                )
        terminal.flush()
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
    if begun < len(session.items):
        raise session.Failed(f"{len(session.items) - begun} tests were not run")


def _describe_end(status: int, nodeid: str, location: Any) -> pytest.TestReport:
    text = f"The process ended with {os.waitstatus_to_exitcode(status)}; the rest of its file was not run."
    return pytest.TestReport(nodeid, location or (nodeid, None, nodeid), {}, "failed", text, "call")
