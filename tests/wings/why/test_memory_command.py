"""Why, from the command line: a sentence's memory, and traces that name verdicts."""

import json
import re

import pytest

from engram.composition.container import Application
from engram.core.learning.logged_verdict import Expansion
from engram.wings.published.parts import published_of
from tests.support import state
from tests.support.command import UNREACHABLE_URL, Cli

QUESTION = "Where was Marie Curie born?"
BORN = "Marie Curie was born in Warsaw in 1867."
RIVER = Expansion("hyde", "The longest river of the country flows past the capital into the sea.")


@pytest.fixture
def taught(application: Application, cli: Cli, curie: str) -> tuple[int, int]:
    """The sentence that a verdict supported, and the verdict."""
    born = state.sentences(application, curie, "curie")[BORN]
    query_id = json.loads(cli("query", QUESTION, "-c", curie, "--json").stdout)["query_id"]
    receipt = state.judge(
        application, curie, query_id, [born], judge="alice", wait=True,
        expansions=(RIVER,), supporting_passages=("vistula",),
    )  # fmt: skip
    return born, receipt.event.id


def run_lines(cli: Cli, *arguments: str) -> list[str]:
    done = cli(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_sentence_s_memory(cli: Cli, application: Application, curie: str, taught: tuple[int, int]) -> None:
    born, event = taught
    lines = run_lines(cli, "memory", str(born), "-c", curie, "--query", QUESTION)
    assert lines[:2] == [f"[{born}] {BORN}", "     of passage curie"]
    near = r"similarity (0\.\d{3}) \(began as (0\.\d{3})\)"
    found = re.fullmatch(rf"task: perplexity 0\.334, verdicts: 1, {near}", lines[2])
    assert found
    assert float(found[1]) > float(found[2])
    assert re.fullmatch(rf"time: perplexity 1\.000, verdicts: 0, {near}", lines[3])
    assert lines[4] == f"supports with 0.667 (perplexity 0.334): '{QUESTION}'"
    assert lines[5].split()[:5] == ["feedback", "judge", "channel", "y", "gain"]
    recall, task = lines[6:]
    quoted = re.escape(f"'{QUESTION}'")
    assert re.fullmatch(
        rf"{event} +alice +recall +1 +0\.667 +\+1\.000 +1\.000 > 0\.334 +0\.000 > 0\.667 +{quoted}", recall
    )
    moved = rf"{found[2]} > {found[1]} +{found[1]} +{quoted}"
    moved = rf"{event} +alice +task +1 +0\.667 +\+0\.\d{{3}} +1\.000 > 0\.334 +{moved}"
    assert re.fullmatch(moved, task)
    query_id = json.loads(cli("query", QUESTION, "-c", curie, "--json").stdout)["query_id"]
    state.judge(application, curie, query_id, [born], judge="bob", wait=True)
    first = run_lines(cli, "memory", str(born), "-c", curie, "--limit", "1")
    sequence = re.fullmatch(r"more: --after (\d+)", first[-1])
    assert sequence
    rest = run_lines(cli, "memory", str(born), "-c", curie, "--after", sequence[1])
    assert {line.split()[1] for line in first[-3:-1]} == {"alice"}
    assert {line.split()[1] for line in rest[-2:]} == {"bob"}
    shown = json.loads(cli("memory", str(born), "-c", curie, "--json").stdout)
    assert [move["channel"] for move in shown["history"][0]["moves"]] == ["recall", "task"]


def test_a_trace_says_which_verdicts_did_what(
    cli: Cli, application: Application, curie: str, taught: tuple[int, int]
) -> None:
    _, event = taught
    published_of(application).evolve.evolve(application.auth.access.scope(curie))
    lines = run_lines(cli, "query", QUESTION, "-c", curie, "--trace")
    by = re.escape(f"by feedback {event} of judge alice: '{QUESTION}'")
    # One verdict leaves a net support of 2/3, which is right 26 times of 27.
    assert any(re.fullmatch(rf" {{10}}recall \+0\.963 {by}", line) for line in lines)
    first = next(at for at, line in enumerate(lines) if line.startswith("curie: rank 1, "))
    recalled = re.fullmatch(
        r"curie: rank 1, \d without memory; score \d+\.\d{3}, of it recall (\+\d+\.\d{3})",
        lines[first],
    )
    assert recalled
    moved = re.fullmatch(rf"     (\+\d+\.\d{{3}}) {by} \(recall \+\d+\.\d{{3}}\)", lines[first + 1])
    assert moved
    # The river's sentence is recalled as well, and so stands among those that the hop reached.
    assert float(moved[1]) == pytest.approx(float(recalled[1]), abs=0.25)
    made = [line for line in lines[first:] if line.startswith("     features: ")]
    assert re.fullmatch(r"     features: (\w+ [+-]\d+\.\d{3}, ){6}\d+ more [+-]\d+\.\d{3}", made[0])
    score = float(lines[first].partition("; score ")[2].partition(",")[0])
    assert sum(map(float, re.findall(r"[+-]\d+\.\d{3}", made[0]))) + float(recalled[1]) == pytest.approx(
        score, abs=0.01
    )
    assert any(re.fullmatch(r"     completes \w+", line) for line in lines)
    lines = run_lines(cli, "query", QUESTION, "-c", curie, "--trace", "--strategy", "dense")
    vistula = next(at for at, line in enumerate(lines) if line.startswith("vistula: rank "))
    assert re.fullmatch(r"     key: similarity -?0\.\d{3}, of the base key -?0\.\d{3}", lines[vistula + 1])
    assert re.fullmatch(r" {10}100% unit \d+, hyde: 'The longest river .*\.\.\.'", lines[vistula + 2])
    assert re.fullmatch(rf" {{15}}credit 0\.\d{{3}} {by}", lines[vistula + 3])


def test_refusals_are_one_line(cli: Cli, curie: str) -> None:
    assert "no sentence 4611686018427387904" in cli.fails("memory", str(2**62), "-c", curie)
    assert "no collection 'nowhere'" in cli.fails("memory", "1", "-c", "nowhere")
    assert cli("memory", "x").returncode == 2
    assert "is `engram up` running?" in cli.fails("memory", "1", "--url", UNREACHABLE_URL).lower()
