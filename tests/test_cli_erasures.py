"""Erasing and exporting from the command line."""

import json

import pytest

from engram.composition.container import Application
from tests.support import state
from tests.support.command import Cli

JUDGE = "siegfried.quux"


@pytest.mark.usefixtures("working")
def test_a_judge_is_exported_and_erased(cli: Cli, application: Application, curie: str) -> None:
    helped = list(state.sentences(application, curie, "curie").values())
    query = state.add_episode(application, curie, "Where was Curie born?", helped)
    state.judge(application, curie, query, helped[:1], wait=True, judge=JUDGE)
    exported = [json.loads(line) for line in cli("export", "--principal", JUDGE).stdout.splitlines()]
    assert {row["table"] for row in exported} >= {"feedback_event", "verdict_sentence"}

    done = cli("erase", "--judge", JUDGE, "-c", curie, "--yes")
    assert done.returncode == 0, done.stderr
    assert "1 of feedback_event" in done.stdout
    assert cli("export", "--principal", JUDGE).stdout == ""
    listed = cli("erasures", "-c", curie)
    assert "judge" in listed.stdout
    assert JUDGE not in listed.stdout


def test_erase_needs_to_know_what(cli: Cli, curie: str) -> None:
    for arguments in ([], ["--judge", "x", "--principal", "y"], ["--judge", "x", "--from", "2026-05-01T00:00:00Z"]):
        assert "Say what to erase" in cli.fails("erase", *arguments, "-c", curie, "--yes")
    assert cli("erase", "--judge", "x", "-c", curie).returncode != 0  # nobody is there to confirm it
