"""Commands that ask the service: their options, their document, and what they print of it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from engram.cli.http_client import Client, drop_unset
from engram.cli.service_commands import service_command
from engram.cli.terminal import say

resumed: list[str] = []


def greet(client: Client, name: str = "Ada") -> Iterator[Any]:
    """Greet somebody."""
    yield {"name": name, "url": client.base_url}
    resumed.append(name)
    say(f"{name} at {client.base_url}")


@pytest.fixture
def app() -> typer.Typer:
    resumed.clear()
    made = typer.Typer()
    made.command()(service_command(greet))
    return made


def test_a_command_has_the_options_of_a_client_and_its_own(app: typer.Typer) -> None:
    shown = CliRunner().invoke(app, ["--help"]).output
    assert all(option in shown for option in ("--name", "--url", "--json"))
    assert "Greet somebody." in shown
    assert "--client" not in shown


def test_json_prints_the_document_alone(app: typer.Typer, capfd: pytest.CaptureFixture[str]) -> None:
    app(["--url", "localhost:1", "--name", "Bo", "--json"], standalone_mode=False)
    assert json.loads(capfd.readouterr().out) == {"name": "Bo", "url": "http://localhost:1"}
    assert resumed == []


def test_without_json_the_command_prints_by_itself(app: typer.Typer, capfd: pytest.CaptureFixture[str]) -> None:
    app(["--url", "http://localhost:1"], standalone_mode=False)
    assert resumed == ["Ada"]


def test_options_that_are_not_none_are_kept() -> None:
    assert drop_unset({"a": 0, "b": None, "c": "", "d": False}) == {"a": 0, "c": "", "d": False}
