"""Bringing a past state back from the command line."""

import json
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from engram.composition.container import Application
from tests.conftest import CURIE, Ingest
from tests.support import state, threads, undo
from tests.support.command import UNREACHABLE_URL, Cli


@pytest.fixture
def taught(application: Application, curie: str) -> list[int]:
    events = undo.stream(application, curie, 8, seed=51)
    undo.apply(application, curie, events, 8)
    return events


@pytest.fixture
def working(application: Application, curie: str) -> Iterator[None]:
    """Somebody does the collection's jobs."""
    stop, target = threading.Event(), state.collection_id(application, curie)

    def run_jobs() -> None:
        while not stop.wait(0.05):
            application.jobs.runner.run_ready(collection_id=target)

    worker = threads.make_thread(run_jobs)
    worker.start()
    yield
    stop.set()
    worker.join()


def format_moment(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


@pytest.mark.usefixtures("working")
def test_a_past_state_is_made_and_verified(
    cli: Cli, application: Application, curie: str, taught: list[int], env: dict[str, str], ingest: Ingest
) -> None:
    until = format_moment(datetime.now(UTC))
    then = undo.list_learned(application, curie)
    application.learning.revocation.revoke(application.auth.access.scope(curie), taught[0])
    application.learning.revocation.revoke(application.auth.access.scope(curie), taught[1])
    application.corpus.ingest.delete_passage(application.auth.access.scope(curie), "tokyo")
    ingest(
        CURIE[0] | {"text": "Marie Curie was born in Warsaw."}, {"id": "new", "text": "Berlin lies on the Spree."}
    )
    gone = {row["sentence_id"] for row in then["memory_audit"]} - set(state.list_sentence_ids(application, curie))

    done = cli("replay", "-c", curie, "--until", until, "--into", f"{curie}-past")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:8] == [
        f"{curie}-past: {curie} as of {until.replace('Z', '+00:00')}",
        "     4 passages",
        "         1 that came since are left out",
        "         1 that changed since are as they are now",
        "     8 verdicts",
        "         2 of them were revoked since",
        f"         {len(gone)} sentences that they speak of are not there",
        "     key generation 0",
    ]
    assert any(re.fullmatch(r"     \d+ rows of question_support", line) for line in lines[8:])
    assert "statistics of states" in done.stderr  # the progress bar
    undo.assert_verified(application, f"{curie}-past")
    assert cli("verify", "-c", f"{curie}-past", **env).returncode == 0


@pytest.mark.usefixtures("working")
def test_past_state_is_named_by_its_moment_and_reported_as_json(
    cli: Cli, application: Application, curie: str, taught: list[int]
) -> None:
    until = datetime.now(UTC)
    done = cli("replay", "-c", curie, "--until", format_moment(until), "--key", "once", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["collection"] == f"{curie}-at-{until:%Y%m%dT%H%M%SZ}"
    assert (report["of"], datetime.fromisoformat(report["until"])) == (curie, until)
    assert (report["events"], report["events_restored"], report["key_generation_certain"]) == (8, 0, True)
    assert report["learned"]["sentence_memory"] == len(state.rows(application, curie, "sentence_memory"))
    again = cli("replay", "-c", curie, "--until", format_moment(until), "--key", "once", "--json")
    assert json.loads(again.stdout) == report
    assert "already" in cli.fails("replay", "-c", curie, "--until", format_moment(until))


def test_replay_reports_an_error_in_one_line(cli: Cli, curie: str) -> None:
    for text in ("yesterday", "2026-05-01", "2026-05-01T12:00:00"):
        assert "Invalid request" in cli.fails("replay", "-c", curie, "--until", text)
    assert "yet to come" in cli.fails("replay", "-c", curie, "--until", "2999-01-01T00:00:00Z")
    past = ("--until", "2026-05-01T12:00:00Z")
    assert "no collection 'nowhere'" in cli.fails("replay", "-c", "nowhere", *past)
    assert "Invalid request" in cli.fails("replay", "-c", curie, *past, "--into", "a/b")
    assert "already" in cli.fails("replay", "-c", curie, *past, "--into", curie)
    assert "is `engram up` running?" in cli.fails("replay", "-c", curie, *past, "--url", UNREACHABLE_URL).lower()
    assert cli("replay", "-c", curie).returncode == 2
