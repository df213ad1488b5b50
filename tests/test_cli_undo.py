"""Revoking and verifying from the command line."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.storage.auth import tenants
from engram.storage.corpus import collections
from engram.storage.database import Reader
from tests.support import databases, state, undo
from tests.support.command import UNREACHABLE_URL, Cli


@pytest.fixture(scope="module")
def application(own: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    """An application on a database of few collections, as all are verified here: that of all tests has hundreds."""
    with databases.application_on(own, settings, application) as services:
        yield services


@pytest.fixture
def env(env: dict[str, str], own: Servers) -> dict[str, str]:
    """What a command that goes there needs in its environment."""
    return env | {"DATABASE_URL": own.database_url}


@pytest.fixture
def taught(application: Application, curie: str) -> list[int]:
    events = undo.stream(application, curie, 8, seed=51)
    undo.apply(application, curie, events, 8)
    return events


def test_verdicts_are_revoked_by_their_ids(
    cli: Cli, application: Application, curie: str, taught: list[int]
) -> None:
    done = cli("revoke", str(taught[0]), str(taught[3]), "-c", curie)
    assert done.stdout == f"feedback {taught[0]}: revoked\nfeedback {taught[3]}: revoked\n", done.stderr
    assert [s for s in state.event_statuses(application, curie).values() if s == "revoked"] == ["revoked"] * 2
    shown = json.loads(cli("revoke", str(taught[0]), "-c", curie, "--json").stdout)
    assert [event["status"] for event in shown["feedback"]] == ["revoked"]
    absent = max(taught) + 1_000_000  # a low one may be there, where this test is the first to run
    assert f"no verdict {absent}." in cli.fails("revoke", str(absent), "-c", curie)


@pytest.mark.usefixtures("working")
def test_a_judges_verdicts_are_revoked_by_a_job_that_is_followed(
    cli: Cli, application: Application, curie: str, taught: list[int]
) -> None:
    done = [
        cli("revoke", "--judge", "careless", "--from", "2020-01-01T00:00:00Z", "-c", curie),
        cli("revoke", "--all", "-c", curie),
    ]
    counts = [re.fullmatch(rf"{curie}: (\d+) revoked\n", run.stdout) for run in done]
    assert all(counts), [run.stderr for run in done]
    assert sum(int(match[1]) for match in counts if match) == len(taught)
    assert set(state.event_statuses(application, curie).values()) == {"revoked"}


def test_revoke_needs_explicit_criteria(cli: Cli, curie: str) -> None:
    for arguments in ([], ["1", "--judge", "x"], ["1", "--all"]):
        assert "Say which verdicts" in cli.fails("revoke", *arguments, "-c", curie)
    assert "Invalid request" in cli.fails("revoke", "--all", "--judge", "x", "-c", curie)
    assert "Invalid request" in cli.fails("revoke", "--from", "yesterday", "-c", curie)
    assert "no collection 'nowhere'" in cli.fails("revoke", "--all", "-c", "nowhere")
    assert "is `engram up` running?" in cli.fails("revoke", "--all", "--url", UNREACHABLE_URL).lower()
    assert cli("revoke", "x", "-c", curie).returncode == 2


def test_a_collection_is_verified(
    cli: Cli, application: Application, curie: str, taught: list[int], env: dict[str, str]
) -> None:
    clean = cli("verify", "-c", curie, **env)
    assert (clean.returncode, clean.stderr) == (0, "")
    first, *tables = clean.stdout.splitlines()
    assert first == f"{curie}: follows from the log"
    assert re.fullmatch(r"     question +\d+  [0-9a-f]{16}", tables[0])
    assert re.fullmatch(r"checked [1-9]\d* rows of 1 collection in database \w+ at /.*/run", tables[-1])

    with application.database.write() as writer:
        changed = writer.execute(
            "UPDATE sentence_memory SET update_count = 77 WHERE collection_id = %(c)s",
            {"c": state.collection_id(application, curie)},
        )
    wrong = cli("verify", "-c", curie, "--differences", "1", **env)
    assert wrong.returncode == 1
    assert wrong.stdout.startswith(f"{curie}: {changed} differences\n")
    shown, more = wrong.stderr.splitlines()
    assert re.fullmatch(rf"{curie}: sentence_memory: sentence \d+, \w+: update_count is 77, replayed \d+", shown)
    assert more == f"{curie}: and {changed - 1} more"

    every = cli("verify", "--json", **env)
    assert every.returncode == 1
    reports = {report["collection"]: report for report in json.loads(every.stdout)["collections"]}
    assert (reports[curie]["clean"], reports[curie]["difference_count"]) == (False, changed)


def test_verification_skips_collections_deleted_meanwhile(
    application: Application, curie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = collections.load_by_id

    def find_and_delete(reader: Reader, collection_id: int) -> collections.Collection:
        if collection_id == target:
            application.corpus.ingest.delete_collection(scope)
        return there(reader, collection_id)

    scope = application.auth.access.scope(curie)
    target = scope.collection.id
    monkeypatch.setattr(collections, "load_by_id", find_and_delete)
    names = [report.collection for report in application.revocation.verification.verify_all()]
    assert curie not in names
    # By their own names; another tenant's is called by its tenant's as well.
    assert names == sorted(names, key=lambda name: name.rpartition("/")[2])


def test_another_tenants_collection_is_verified_by_tenant_and_name(
    application: Application, collection: str, cli: Cli, env: dict[str, str]
) -> None:
    tenant = f"acme-{collection[-8:]}"
    with application.database.write() as writer:
        tenants.make(writer, tenant)
        collections.open_for_writing(writer, collection, application.models.encoder.id, tenant)
    shown = cli("verify", "-c", f"{tenant}/{collection}", **env)
    assert f"{tenant}/{collection}: follows from the log" in shown.stdout
    assert "no collection" in cli.fails("verify", "-c", collection, **env)


@pytest.mark.parametrize("command", [("verify",), ("maintain",), ("judge", "--once"), ("worker",), ("serve",)])
def test_no_command_but_up_and_migrate_makes_a_database(cli: Cli, tmp_path: Path, command: tuple[str, ...]) -> None:
    assert f"no database in {tmp_path}" in cli.fails(*command, ENGRAM_DATA_DIR=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_verify_fails_without_collections(cli: Cli, addresses: Servers, env: dict[str, str]) -> None:
    with databases.open_migrated(addresses) as empty:
        message = cli.fails("verify", **(env | {"DATABASE_URL": empty.database_url}))
    assert "no collection to verify in database test_" in message


def test_verify_reports_an_error_in_one_line(cli: Cli, env: dict[str, str]) -> None:
    assert "no collection 'nowhere'" in cli.fails("verify", "-c", "nowhere", **env)
    assert "Postgres" in cli.fails("verify", **(env | {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/x"}))
