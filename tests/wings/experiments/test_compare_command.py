"""Two arms in two columns, from the command line."""

import json
import re

import pytest

from engram.composition.container import Application
from engram.core.learning.logged_verdict import Expansion
from tests.support import state
from tests.support.command import UNREACHABLE_URL, Cli

QUESTION = "Where was Marie Curie born?"
BORN = "Marie Curie was born in Warsaw in 1867."
RIVER = Expansion("hyde", "The longest river of the country flows past the capital into the sea.")


@pytest.fixture
def taught(application: Application, cli: Cli, curie: str) -> None:
    """A verdict that supports a sentence and a passage."""
    born = state.sentences(application, curie, "curie")[BORN]
    query_id = json.loads(cli("query", QUESTION, "-c", curie, "--json").stdout)["query_id"]
    state.judge(
        application, curie, query_id, [born], wait=True, expansions=(RIVER,), supporting_passages=("vistula",)
    )


def run_lines(cli: Cli, *arguments: str) -> list[str]:
    done = cli(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.usefixtures("taught")
def test_two_arms_in_two_columns(cli: Cli, curie: str) -> None:
    lines = run_lines(cli, "compare", QUESTION, "-c", curie, "--b", "memory=read,profile=default", "--top-k", "3")
    assert all(len(line) <= 100 for line in lines)
    assert lines[0].split("  ")[0] == "a: memory off, profile default, graph"
    assert lines[0].endswith("b: memory read, profile default, graph")
    assert lines[2].startswith("recalled 0, moved 0, keys 0  ")
    assert lines[2].endswith("  recalled 2, moved 0, keys 0")
    assert lines[3].strip() == ""
    left, right = ([line[start : start + 46].rstrip() for line in lines[4:7]] for start in (0, 48))
    ranked = re.compile(r" {2}(\d)\. (\w+)  -?\d+\.\d{3}(  \((\d in|not in) [ab]\))?")
    for column in (left, right):
        assert [ranked.fullmatch(line)[1] for line in column] == ["1", "2", "3"]  # type: ignore[index]
    assert ranked.fullmatch(right[0])[2] == "curie"  # type: ignore[index]
    titled = [line for line in lines[7:] if line.startswith("curie  ")]
    assert [line[:60] for line in titled] == ["curie  Marie Curie: Marie Curie was born in Warsaw in 1867. "]
    document = json.loads(cli("compare", QUESTION, "-c", curie, "--a", "profile=paper", "--json").stdout)
    assert (document["a"]["profile"], document["a"]["memory"]) == ("paper", "read")


def test_refusals_are_one_line(cli: Cli, curie: str) -> None:
    assert "no collection 'nowhere'" in cli.fails("compare", QUESTION, "-c", "nowhere")
    for odd in ("memory", "memory=", "colour=red", "=off"):
        assert f"{odd!r} is no arm" in cli.fails("compare", QUESTION, "-c", curie, "--a", odd)
    assert "Invalid request" in cli.fails("compare", QUESTION, "-c", curie, "--a", "memory=perhaps")
    assert "Invalid request" in cli.fails("compare", " ", "-c", curie)
    assert "is `engram up` running?" in cli.fails("compare", QUESTION, "--url", UNREACHABLE_URL).lower()
