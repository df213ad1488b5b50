"""``engram ask``: rounds as they come, and what they came to."""

import json
import threading
from collections.abc import Iterator
from uuid import UUID

import pytest
from typer.testing import CliRunner

from engram import cli as command_line
from engram.cli.http_client import Client, ClientError
from engram.cli.query_commands import INTERRUPT_EXIT_CODE
from engram.composition.container import Application
from tests.support import threads
from tests.support.command import UNREACHABLE_URL, Cli
from tests.support.processes import eventually

CHAIN = "Into which sea does the river that the birthplace of Marie Curie lies on flow?"


def start_working(application: Application, asked: list[bool]) -> threading.Thread:
    """Does jobs as a worker would, until something was asked."""

    def run() -> None:
        eventually(lambda: application.jobs.runner.run_ready() > 0 or bool(asked))

    thread = threads.make_thread(run)
    thread.start()
    return thread


def test_rounds_are_shown_as_they_come(cli: Cli, application: Application, curie: str) -> None:
    asked: list[bool] = []
    worker = start_working(application, asked)
    said = cli("ask", CHAIN, "-c", curie, "--planner", "pool", "--top-k", "2").stdout
    asked.append(True)
    worker.join()
    lines = said.splitlines()
    assert lines[0] == f"round 1: {CHAIN}"
    assert lines[1].startswith("     3 sentences, sufficiency 0.")
    assert lines[2] == "round 2: into which sea does the river that Warsaw lies on flow"
    assert any(line.startswith("session ") and ", 2 rounds, 3 passages, " in line for line in lines)
    assert any(line.startswith("  the birthplace of Marie Curie: Warsaw  [") for line in lines)
    assert "1. curie" in lines


@pytest.mark.parametrize(("there", "reason"), [(True, "There is no session"), (False, "broke off")])
def test_rounds_that_cannot_be_had_are_an_error(service: str, curie: str, there: bool, reason: str) -> None:
    path = f"/sessions/{UUID(int=0)}/events?collection={curie}"
    with Client(service if there else UNREACHABLE_URL) as client, pytest.raises(ClientError, match=reason):
        list(client.events(path))


def test_ask_prints_the_session_as_json(cli: Cli, application: Application, curie: str) -> None:
    for _ in range(2):
        asked: list[bool] = []
        worker = start_working(application, asked)
        session = json.loads(cli("ask", CHAIN, "-c", curie, "--rounds", "1", "--json").stdout)
        asked.append(True)
        worker.join()
    assert (session["question"], session["cost"]["rounds"]) == (CHAIN, 1)
    listed = cli("session", "list", "-c", curie, "--limit", "1").stdout.splitlines()
    assert listed[0].split()[:3] == ["session", "planner", "status"]
    assert listed[1].startswith(session["session_id"])
    assert listed[1].endswith(CHAIN)
    assert listed[2] == f"more: engram session list -c {curie} --before {session['session_id']}"
    assert json.loads(cli("session", "list", "-c", curie, "--status", "failed", "--json").stdout)["sessions"] == []


class InterruptedClient:
    """A client whose user presses Ctrl-C while it follows a session."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []

    def __enter__(self) -> "InterruptedClient":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def send(self, method: str, path: str, **_: object) -> dict[str, str]:
        self.requests.append((method, path))
        return {"session_id": "s1", "events_url": "/sessions/s1/events"}

    def events(self, _path: str) -> Iterator[tuple[str, object]]:
        raise KeyboardInterrupt


def test_ctrl_c_cancels_the_session_and_exits_as_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    client = InterruptedClient()
    monkeypatch.setattr("engram.wings.sessions.cli.ask_command.open_client", lambda _url: client)
    ended = CliRunner().invoke(command_line.cli, ["ask", CHAIN])
    assert (ended.exit_code, ended.stderr) == (INTERRUPT_EXIT_CODE, "cancelled\n")
    assert client.requests == [("POST", "/sessions"), ("DELETE", "/sessions/s1")]


def test_ask_fails_in_one_line_without_an_llm(cli: Cli, curie: str) -> None:
    said = cli.fails("ask", CHAIN, "-c", curie, "--planner", "socratic")
    assert said.startswith(
        "engram: No LLM endpoint is configured: Planner 'socratic' needs ENGRAM_LLM_BASE_URL to be set."
    )


def test_ask_reports_an_answer_that_is_not_found(cli: Cli, application: Application, curie: str) -> None:
    asked: list[bool] = []
    worker = start_working(application, asked)
    lines = cli("ask", "Who directed the film Casablanca?", "-c", curie, "--planner", "pool").stdout.splitlines()
    asked.append(True)
    worker.join()
    assert any(line.startswith("session ") and ": not found here, 1 round, " in line for line in lines)
