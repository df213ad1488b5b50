"""Judges from the command line."""

import json

import pytest

from engram.composition.container import Application
from tests.support import undo
from tests.support.command import Cli


def test_judges_are_shown_and_set(cli: Cli, application: Application, curie: str) -> None:
    assert "no judges" in cli("judges", "list", "-c", curie).stdout
    events = undo.stream(application, curie, 8, seed=51)
    undo.apply(application, curie, events, 8)
    done = cli("judges", "set", "careful", "--positive", "2", "--contested", "0.05", "-c", curie)
    assert done.returncode == 0
    assert "2*" in done.stdout
    assert "0.05*" in done.stdout
    shown = cli("judges", "list", "-c", curie)
    assert [line.split()[0] for line in shown.stdout.splitlines()] == ["judge", "careful", "careless"]
    page = json.loads(cli("judges", "list", "-c", curie, "--json").stdout)
    assert sum(judge["applied"] for judge in page["judges"]) == 8
    (first,) = json.loads(cli("judges", "list", "-c", curie, "--limit", "1", "--json").stdout)["judges"]
    assert first["set"] == ["observation_noise_positive", "contested_share"]
    like_all = cli("judges", "set", "careful", "--like-all", "-c", curie, "--json")
    assert json.loads(like_all.stdout)["set"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("judges", "set", "careful"),
        ("judges", "set", "careful", "--share", "0.5", "--like-all"),
        ("judges", "set", "careful", "--share", "1.5"),
        ("judges", "list", "-c", "no-such-collection"),
    ],
)
def test_a_slip_is_one_line_and_a_failure(cli: Cli, curie: str, arguments: tuple[str, ...]) -> None:
    done = cli(*arguments, *(() if "-c" in arguments else ("-c", curie)))
    assert done.returncode == 1
    assert len(done.stderr.strip().splitlines()) == 1
