"""Jobs from the command line."""

import json
import re
import signal
import time
from pathlib import Path
from uuid import uuid4

import pytest

from engram.composition.container import Application
from tests.support import state
from tests.support.command import UNREACHABLE_URL, Cli


@pytest.fixture
def waiting(application: Application, curie: str) -> list[str]:
    """Two jobs that wait for a worker."""
    return [str(state.stage_passages(application, curie, {"id": f"p{n}", "text": "Bees fly."})) for n in range(2)]


def test_jobs_are_listed_and_cancelled(cli: Cli, application: Application, curie: str, waiting: list[str]) -> None:
    first, second = waiting
    heading, *rows, more = cli("job", "list", "-c", curie, "--limit", "2").stdout.splitlines()
    assert heading.split() == ["job", "kind", "status", "done", "of", "asked", "for"]
    assert re.fullmatch(rf"{second}  ingest  queued +0   1  \S+ \S+  1 ahead", rows[0])
    assert re.fullmatch(rf"{first}  ingest  queued +0   1  \S+ \S+", rows[1])
    before = re.fullmatch(rf"more: engram job list -c {curie} --before (\d+)", more)
    assert before
    shown = json.loads(cli("job", "list", "-c", curie, "--before", before[1], "--json").stdout)
    assert [job["status"] for job in shown["jobs"]] == ["succeeded"]

    assert cli("job", "cancel", first, "-c", curie).stdout == f"job {first}: cancelled, 0 of 1 done\n"
    done = json.loads(cli("job", "cancel", second, "-c", curie, "--json").stdout)
    assert (done["job_id"], done["status"]) == (second, "cancelled")
    assert cli("job", "list", "-c", curie).stdout.count("cancelled") == 2


def test_cancel_reports_that_a_running_job_ends_soon(
    cli: Cli, application: Application, curie: str, waiting: list[str]
) -> None:
    runner = application.jobs.runner
    running = runner.claim(uuid4(), runner.lanes, state.collection_id(application, curie))
    assert running is not None
    said = cli("job", "cancel", str(running.id), "-c", curie).stdout
    assert said == f"job {running.id}: ends as soon as what is in hand is whole, 0 of 1 done so far\n"
    assert "to be cancelled" in cli("job", "list", "-c", curie).stdout
    assert runner.carry_out(running, lambda: False)


def test_ctrl_c_leaves_the_job_to_its_worker_and_says_so(
    cli: Cli, application: Application, collection: str, tmp_path: Path
) -> None:
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text(json.dumps({"id": "bees", "text": "Bees fly."}))
    with (tmp_path / "said").open("w+b") as said:
        ingest = cli.begin("ingest", str(corpus), "-c", collection, output=said)
        while f"engram job list -c {collection} shows it" not in (text := (tmp_path / "said").read_text()):
            assert ingest.poll() is None, text
            time.sleep(0.05)
        time.sleep(0.5)  # the job is followed by now; no worker takes it
        ingest.send_signal(signal.SIGINT)
        assert ingest.wait(20) == 130
    text = (tmp_path / "said").read_text()
    job = re.search(
        rf"^corpus.jsonl: the job goes on. `engram job list -c {collection}` shows it, "
        rf"`engram job cancel (\S+) -c {collection}` ends it.$",
        text,
        re.MULTILINE,
    )
    assert job, text
    assert cli("job", "cancel", job[1], "-c", collection).stdout == f"job {job[1]}: cancelled, 0 of 1 done\n"


def test_job_command_errors_are_one_line(cli: Cli, application: Application, curie: str) -> None:
    (over,) = json.loads(cli("job", "list", "-c", curie, "--json").stdout)["jobs"]
    assert "is over" in cli.fails("job", "cancel", over["job_id"], "-c", curie)
    assert "There is no job" in cli.fails("job", "cancel", str(uuid4()), "-c", curie)
    assert "Invalid request" in cli.fails("job", "cancel", "x", "-c", curie)
    for command in (["job", "list"], ["job", "cancel", str(uuid4())]):
        assert "no collection 'nowhere'" in cli.fails(*command, "-c", "nowhere")
        assert "is `engram up` running?" in cli.fails(*command, "--url", UNREACHABLE_URL).lower()
