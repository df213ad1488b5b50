"""Bringing a past state back from the command line."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.composition import Application
from app.settings import Settings
from tests.conftest import CURIE, Ingest
from tests.support import state, undo
from tests.support.command import NOWHERE, ROOT, Cli

STOPPED = "engram: Stopped before the end; no collection was made.\n"


@pytest.fixture
def cli(tmp_path: Path, settings: Settings) -> Cli:
    return Cli(tmp_path, NOWHERE, settings.data_dir)


@pytest.fixture
def taught(application: Application, curie: str) -> list[int]:
    events = undo.stream(application, curie, 8, seed=51)
    undo.apply(application, curie, events, 8)
    return events


def written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def test_a_past_state_is_made_and_verified(
    cli: Cli, application: Application, curie: str, taught: list[int], env: dict[str, str], ingest: Ingest
) -> None:
    until = written(datetime.now(UTC))
    then = undo.learned(application, curie)
    application.revoke.revoke(application.access.scope(curie), taught[0])
    application.revoke.revoke(application.access.scope(curie), taught[1])
    application.ingest.delete_passage(application.access.scope(curie), "tokyo")
    ingest(
        CURIE[0] | {"text": "Marie Curie was born in Warsaw."}, {"id": "new", "text": "Berlin lies on the Spree."}
    )
    gone = {row["sentence_id"] for row in then["memory_audit"]} - set(state.all_sentences(application, curie))

    done = cli("replay", curie, "--until", until, "--into", f"{curie}-past", **env)
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
    assert "verdicts" in done.stderr  # the progress bar
    undo.assert_verified(application, f"{curie}-past")


def test_it_is_named_by_the_moment_and_reported_as_json(
    cli: Cli, application: Application, curie: str, taught: list[int], env: dict[str, str]
) -> None:
    until = datetime.now(UTC)
    done = cli("replay", curie, "--until", written(until), "--json", **env)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["collection"] == f"{curie}-at-{until:%Y%m%dT%H%M%SZ}"
    assert (report["of"], datetime.fromisoformat(report["until"])) == (curie, until)
    assert (report["events"], report["events_restored"], report["key_generation_certain"]) == (8, 0, True)
    assert report["learned"]["sentence_memory"] == len(state.rows(application, curie, "sentence_memory"))
    assert cli("verify", report["collection"], **env).returncode == 0
    assert "already" in cli.fails("replay", curie, "--until", written(until), **env)


def test_it_says_in_one_line_what_is_wrong(cli: Cli, curie: str, env: dict[str, str]) -> None:
    for text in ("yesterday", "2026-05-01", "2026-05-01T12:00:00"):
        assert "must be a date and time with its offset" in cli.fails("replay", curie, "--until", text, **env)
    assert "yet to come" in cli.fails("replay", curie, "--until", "2999-01-01T00:00:00Z", **env)
    past = ("--until", "2026-05-01T12:00:00Z")
    assert "no collection 'nowhere'" in cli.fails("replay", "nowhere", *past, **env)
    assert "is no name" in cli.fails("replay", curie, *past, "--into", "a/b", **env)
    assert "already" in cli.fails("replay", curie, *past, "--into", curie, **env)
    nowhere = env | {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/x"}
    assert "Postgres" in cli.fails("replay", curie, *past, **nowhere)
    assert cli("replay", curie, **env).returncode == 2


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_one_that_is_stopped(
    cli: Cli, application: Application, curie: str, taught: list[int], env: dict[str, str], end: signal.Signals
) -> None:
    name = f"{curie}-past"
    command = ("replay", curie, "--until", written(datetime.now(UTC)), "--into", name)
    with application.database.write() as writer:  # holds it up half-way
        writer.execute("LOCK TABLE memory_audit IN SHARE MODE")
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", *command],
            cwd=cli.folder,
            env=os.environ | env | {"PYTHONPATH": str(ROOT), "ENGRAM_DATA_DIR": str(cli.data)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        until(lambda: _waiting(application) == 1)
        process.send_signal(end)
        if end != signal.SIGKILL:
            out, said = process.communicate(timeout=60)
            assert (process.returncode, out) == (1, "")
            assert said.endswith(STOPPED)
    process.wait(timeout=60)
    until(lambda: _copying(application) == 0)
    assert name not in application.verify.names()
    with application.database.read() as reader:
        for table in ("passage", "feedback_event", "judged_query"):
            statement = f"SELECT count(*) FROM {table} WHERE collection_id NOT IN (SELECT id FROM collection)"
            assert reader.scalar(statement) == 0
    assert application.past.replay(application.access.scope(curie), datetime.now(UTC), name).events == len(taught)


def until(met: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _waiting(application: Application) -> int:
    with application.database.read() as reader:
        found: int = reader.scalar(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
    return found


def _copying(application: Application) -> int:
    """Transactions that inserted the audit, or wait to."""
    with application.database.read() as reader:
        found: int = reader.scalar(
            """
            SELECT count(DISTINCT pid) FROM pg_locks
            WHERE relation = 'memory_audit'::regclass AND mode = 'RowExclusiveLock'
            """
        )
    return found
