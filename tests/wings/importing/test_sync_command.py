"""A folder whose documents follow it."""

import json
import os
import shutil
import signal
import time
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from engram.wings.importing.conversion.folder import list_files
from engram.wings.importing.sources.local_files import LocalFiles
from tests.support import forks
from tests.support.command import Cli
from tests.support.processes import eventually
from tests.wings.importing.office_files import LOCK_FILE

pytestmark = pytest.mark.usefixtures("working")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    for name, text in {
        "rivers": "The Rhine ends in the North Sea.",
        "lakes": "Lake Constance lies in the Alps.",
        "towns": "Basel lies on the Rhine. Its university is old. Its fair is older.",
        "roads": "The road to Bern is closed.",
    }.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


@pytest.fixture
def collection() -> str:
    return f"sync-{uuid4().hex[:8]}"


def sync(cli: Cli, folder: Path, collection: str, *more: str, code: int = 0) -> dict[str, Any]:
    """Run the command; return what it did, of the jobs only their counts."""
    done = cli("sync", str(folder), "-c", collection, "--json", *more)
    assert done.returncode == code, done.stderr
    report = json.loads(done.stdout)
    report["jobs"] = [(job["created"], job["updated"]) for job in report["jobs"]]
    return {name: value for name, value in report.items() if value}


def list_passages(cli: Cli, collection: str) -> dict[str, str]:
    """Id -> source of each passage."""
    listed = json.loads(cli("passage", "list", "-c", collection, "--json").stdout)["passages"]
    return {one["id"]: one["source"]["document"] for one in listed}


def test_only_what_changed_is_read_and_the_rest_is_moved_or_deleted(
    cli: Cli, folder: Path, collection: str
) -> None:
    assert sync(cli, folder, collection) == {
        "files": 4,
        "uploaded": ["lakes.txt", "rivers.txt", "roads.txt", "towns.txt"],
        "jobs": [(4, 0)],
    }
    (folder / "deep" / "~$towns.docx").write_bytes(LOCK_FILE)
    assert cli("sync", str(folder), "-c", collection).stdout == "4 files: all in step\n"

    (folder / "rivers.txt").rename(folder / "deep" / "rivers.txt")
    (folder / "lakes.txt").write_text("Lake Geneva lies in the Alps.")
    (folder / "roads.txt").unlink()
    assert sync(cli, folder, collection) == {
        "files": 3,
        "uploaded": ["lakes.txt"],
        "moved": [{"before": "rivers.txt", "source": "deep/rivers.txt"}],
        "deleted": ["roads.txt"],
        "jobs": [(0, 1)],
    }
    assert list_passages(cli, collection) == {
        f"{source}#1": source for source in ("deep/rivers.txt", "lakes.txt", "towns.txt")
    }


def test_a_file_with_another_name_or_with_most_of_its_text_is_the_same_document(
    cli: Cli, folder: Path, collection: str
) -> None:
    sync(cli, folder, collection)
    (folder / "kinds.md").write_text("# Kinds of water\n\nA lake is still.")
    sync(cli, folder, collection)
    (folder / "kinds.md").rename(folder / "waters.MD")  # is moved without reading
    (folder / "rivers.txt").rename(folder / "streams.txt")  # its title is its name
    (folder / "towns.txt").rename(folder / "cities.txt")
    (folder / "cities.txt").write_text("Basel lies on the Rhine. Its university is old. Its fair is not.")
    assert sync(cli, folder, collection) == {
        "files": 5,
        "uploaded": ["cities.txt"],
        "moved": [{"before": "rivers.txt", "source": "streams.txt"}, {"before": "kinds.md", "source": "waters.MD"}],
        "jobs": [(0, 2)],
    }
    assert sync(cli, folder, collection) == {"files": 5}
    assert list_passages(cli, collection)["waters.MD#1"] == "waters.MD"


def test_a_renamed_folder_is_the_same_folder(cli: Cli, folder: Path, collection: str) -> None:
    sync(cli, folder, collection)
    renamed = folder.rename(folder.with_name("papers"))
    (renamed / "roads.txt").unlink()
    (renamed / "lakes.txt").write_text("Lake Geneva lies in the Alps.")
    assert sync(cli, renamed, collection) == {
        "files": 3,
        "changed": ["rivers.txt", "towns.txt"],
        "uploaded": ["lakes.txt"],
        "deleted": ["roads.txt"],
        "jobs": [(0, 1)],
    }


def test_only_an_absent_folder_of_this_machine_is_an_earlier_name(folder: Path) -> None:
    others = ["oikb", "s3://bucket/notes", str(folder.parent), str(folder.parent / "earlier")]
    assert LocalFiles([folder]).choose_earlier_names(others) == [str(folder.parent / "earlier")]


def test_documents_that_the_key_does_not_see_are_named(
    cli: Cli, env: dict[str, str], folder: Path, collection: str
) -> None:
    """Their files' ends would go unnoticed."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))
    (folder / ".engram-readers").write_text("*: group:hr\n")
    grants = ("--scope", "read", "--scope", "ingest")
    for principal, named in (("group:staff", names), ("group:hr", [])):
        key = cli("access", "create-key", "sync", *grants, "--principal", principal, **env).stdout.strip()
        done = cli("sync", str(folder), "-c", collection, ENGRAM_ACCESS_KEY=key)
        assert done.returncode == 0, done.stderr
        told = f"not seen by this key, so sent by each run and never deleted: {', '.join(named)}. Take a key"
        assert ("not seen by this key" in done.stderr, not named or told in done.stderr) == (bool(named), True)


def test_a_document_whose_lines_are_rejected_failed(
    cli: Cli, env: dict[str, str], folder: Path, collection: str
) -> None:
    rows = [{"id": name, "text": f"The {name} ends in the Rhine."} for name in ("Aare", "Thur")]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    sync(cli, folder, collection)
    passage = f"{cli.service}/passages/rows.jsonl%23Aare"
    httpx.patch(passage, params={"collection": collection}, json={"readers": ["group:hr"]}).raise_for_status()
    grants = ("--scope", "read", "--scope", "ingest", "--principal", "group:staff")
    key = cli("access", "create-key", "sync", *grants, **env).stdout.strip()
    (folder / "lakes.txt").write_text("Lake Geneva lies in the Alps.")
    for done in ("1 uploaded, 1 failed", "1 failed"):
        run = cli("sync", str(folder), "-c", collection, ENGRAM_ACCESS_KEY=key)
        assert (run.returncode, run.stdout.splitlines()[-1]) == (1, f"5 files: {done}"), run.stderr
        assert "sync: rows.jsonl: You do not see all of 'rows.jsonl'." in run.stderr


@pytest.mark.parametrize(("seconds", "is_read"), [(3_600, True), (0, True), (-60, False)])
def test_a_file_that_just_changed_is_hashed_again(tmp_path: Path, seconds: int, is_read: bool) -> None:
    moment = int(time.time()) + seconds
    files = LocalFiles([tmp_path])
    digests = []
    for text in ("seven", "eight"):
        (tmp_path / "a.md").write_text(text)
        os.utime(tmp_path / "a.md", (moment, moment))
        (file,) = files.list_files("", tuple).sources
        digests.append(files.find_digest(file))
    assert (digests[0] != digests[1]) is is_read


def test_a_change_of_readers_alone_is_applied(cli: Cli, folder: Path, collection: str) -> None:
    sync(cli, folder, collection)
    (folder / ".engram-readers").write_text("*: everyone\nlakes.txt: group:hr\n")
    assert sync(cli, folder, collection) == {"files": 4, "changed": ["lakes.txt"]}
    assert sync(cli, folder, collection) == {"files": 4}
    assert explain(cli, collection, "lakes.txt#1") == ["group:hr"]
    assert "lakes.txt#1  [group:hr] " in cli("passage", "list", "-c", collection).stdout


def explain(cli: Cli, collection: str, passage: str) -> list[str] | None:
    """Readers of a passage."""
    asked = cli("access", "explain", passage, "-c", collection, "--as", "group:hr", "--json")
    readers: list[str] | None = json.loads(asked.stdout)["readers"]
    return readers


def test_files_that_no_rule_names_are_closed_and_named_at_every_run(
    cli: Cli, folder: Path, collection: str
) -> None:
    (folder / ".engram-readers").write_text("lakes.txt: group:hr\n")
    for _ in range(2):
        done = cli("sync", str(folder), "-c", collection)
        assert (
            "read by nobody, as no line of .engram-readers names them: rivers.txt, roads.txt, towns.txt\n"
            in done.stderr
        )
    assert [explain(cli, collection, f"{name}.txt#1") for name in ("lakes", "rivers")] == [["group:hr"], []]
    done = cli("sync", str(folder), "-c", collection, "--readers", "everyone")
    assert "read by everyone, as no line of .engram-readers names them" in done.stderr
    assert [explain(cli, collection, f"{name}.txt#1") for name in ("lakes", "rivers")] == [["group:hr"], None]


def test_new_files_of_a_folder_that_lost_its_rules_are_closed(cli: Cli, folder: Path, collection: str) -> None:
    rules = folder / ".engram-readers"
    rules.write_text("*: everyone\nlakes.txt: group:hr\n")
    sync(cli, folder, collection)
    rules.unlink()
    (folder / "bays.txt").write_text("The bay is deep.")
    (folder / "lakes.txt").write_text("Lake Geneva lies in the Alps.")
    (folder / "rivers.txt").rename(folder / "deep" / "rivers.txt")
    done = cli("sync", str(folder), "-c", collection)
    assert "1 of its documents have readers" in done.stderr
    (folder / "deep" / "cliffs.txt").write_text("The cliff is steep.")
    assert cli("import", str(folder / "deep" / "cliffs.txt"), "-c", collection).returncode == 0
    (folder / "deep" / "dunes.txt").write_text("The dune moves.")
    assert cli("import", str(folder), "-c", collection).returncode == 0
    sources = ("bays", "lakes", "deep/cliffs", "deep/dunes", "deep/rivers", "towns")
    assert {source: explain(cli, collection, f"{source}.txt#1") for source in sources} == {
        "bays": [],
        "lakes": ["group:hr"],
        "deep/cliffs": [],
        "deep/dunes": [],
        "deep/rivers": None,
        "towns": None,
    }


def test_a_rule_that_matches_nothing_imports_nothing(cli: Cli, folder: Path, collection: str) -> None:
    (folder / ".engram-readers").write_text("*: everyone\nwages/*: group:hr\n")
    assert "line 2: 'wages/*' matches no file" in cli.fails("sync", str(folder), "-c", collection)
    assert "line 2: 'wages/*' matches no file" in cli.fails("import", str(folder / "towns.txt"), "-c", collection)


def test_a_file_that_cannot_be_converted_keeps_its_document(cli: Cli, folder: Path, collection: str) -> None:
    (folder / "bridges.csv").write_text("text\nThe bridge is long.\n")
    sync(cli, folder, collection)
    (folder / "bridges.csv").write_text("text\n")
    (folder / "roads.txt").unlink()
    assert sync(cli, folder, collection, code=1) == {
        "files": 4,
        "failed": ["bridges.csv"],
        "deleted": ["roads.txt"],
    }
    assert "bridges.csv#1" in list_passages(cli, collection)


@pytest.mark.parametrize("blank", ["", " \n", "\ufeff"])
def test_an_empty_file_is_left_alone_and_its_document_goes(
    cli: Cli, folder: Path, collection: str, blank: str
) -> None:
    (folder / "new.txt").write_text(blank)
    done = cli("sync", str(folder), "-c", collection)
    assert (done.returncode, "left alone, being empty: new.txt" in done.stderr) == (0, True)
    (folder / "roads.txt").write_text(blank)
    assert sync(cli, folder, collection) == {"files": 3, "deleted": ["roads.txt"]}


def test_many_deletions_wait_for_a_word(cli: Cli, folder: Path, collection: str) -> None:
    sync(cli, folder, collection)
    for name in ("rivers", "lakes", "towns"):
        (folder / f"{name}.txt").unlink()
    planned = cli("sync", str(folder), "-c", collection, "--dry-run")
    assert planned.returncode == 0
    assert planned.stdout.splitlines() == [
        "delete: lakes.txt",
        "delete: rivers.txt",
        "delete: towns.txt",
        "1 file: 3 deleted",
    ]
    done = cli("sync", str(folder), "-c", collection)
    assert done.returncode == 1
    assert "nothing is deleted: 3 of 4 documents are no longer in the folder." in done.stderr
    assert len(list_passages(cli, collection)) == 4
    assert sync(cli, folder, collection, "--allow-mass-deletion")["deleted"] == [
        "lakes.txt",
        "rivers.txt",
        "towns.txt",
    ]


def test_one_of_two_names_that_unicode_composes_alike_is_read(cli: Cli, folder: Path, collection: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, "Zürich.txt") for form in ("NFC", "NFD"))
    (folder / composed).write_text("Zurich lies on the Limmat.")
    (folder / decomposed).write_text("Another text.")
    done = cli("sync", str(folder), "-c", collection)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "5 files: 5 uploaded")
    assert f"not read, as another file has the same name in Unicode: {composed}" in done.stderr
    listed = json.loads(cli("passage", "list", "-c", collection, "--json").stdout)["passages"]
    assert [one["text"] for one in listed if one["id"] == f"{composed}#1"] == ["Zurich lies on the Limmat."]


def test_a_folder_that_cannot_be_entered_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter = os.scandir

    def refuse(path: str) -> Any:
        if str(path).endswith("deep"):
            raise PermissionError(13, "Permission denied", str(path))
        return enter(path)

    monkeypatch.setattr(os, "scandir", refuse)
    listed = list_files([folder])
    assert listed.unreadable == (str(folder.resolve() / "deep"),)
    assert len(listed.sources) == 4


def test_a_watched_folder_is_followed(cli: Cli, folder: Path, collection: str, tmp_path: Path) -> None:
    output = tmp_path / "output"
    with output.open("wb") as log:
        watching = cli.begin("sync", str(folder), "-c", collection, "--watch", output=log)
        try:
            await_line(output, "4 files: 4 uploaded")
            (folder / "roads.txt").unlink()
            await_line(output, "3 files: 1 deleted")
        finally:
            watching.terminate()
            watching.wait(10)
    assert "roads.txt#1" not in list_passages(cli, collection)


def lead_elsewhere(link: Path, folder: Path) -> None:
    """Have a link lead to another folder, without a moment in which it leads nowhere."""
    (link.parent / "next").symlink_to(folder)
    (link.parent / "next").replace(link)


def test_a_link_that_leads_to_another_folder_is_the_same_folder(
    cli: Cli, folder: Path, collection: str, tmp_path: Path
) -> None:
    lead_elsewhere(link := tmp_path / "current", folder)
    sync(cli, link, collection)
    lead_elsewhere(link, shutil.copytree(folder, tmp_path / "release"))
    (link / "roads.txt").unlink()
    assert sync(cli, link, collection) == {"files": 3, "deleted": ["roads.txt"]}
    named = cli("import", str(tmp_path / "release" / "rivers.txt"), "-c", collection)
    assert named.returncode == 0
    assert len(list_passages(cli, collection)) == 3


@pytest.mark.parametrize("is_link", [False, True])
def test_another_folder_under_the_watched_path_is_followed(
    cli: Cli, folder: Path, collection: str, tmp_path: Path, is_link: bool
) -> None:
    output = tmp_path / "output"
    if is_link:
        lead_elsewhere(link := tmp_path / "current", folder)
        folder = link
    quick = replace(cli, constants={"engram.wings.importing.cli.sync_command:RETRY_MILLISECONDS": 300})
    with output.open("wb") as log:
        watching = quick.begin("sync", str(folder), "-c", collection, "--watch", output=log)
        try:
            await_line(output, "4 files: 4 uploaded")
            shutil.copytree(folder, tmp_path / "release")
            if is_link:
                lead_elsewhere(folder, tmp_path / "release")
            else:
                folder.rename(tmp_path / "earlier")
                (tmp_path / "release").rename(folder)
            (folder / "roads.txt").write_text("The road to Bern is open.")
            await_line(output, "4 files: 1 uploaded")
            (folder / "towns.txt").unlink()
            await_line(output, "3 files: 1 deleted")
        finally:
            watching.terminate()
            watching.wait(10)


def test_a_change_that_the_system_does_not_tell_of_is_found_by_time(
    cli: Cli, folder: Path, collection: str, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    quick = replace(cli, constants={"engram.wings.importing.cli.sync_command:RETRY_MILLISECONDS": 300})
    with output.open("wb") as log:
        watching = quick.begin("sync", str(folder), "-c", collection, "--watch", "--every", "1s", output=log)
        try:
            await_line(output, "4 files: 4 uploaded")
            assert cli("document", "delete", "roads.txt", "-c", collection).returncode == 0
            await_line(output, "4 files: 1 uploaded")
        finally:
            watching.terminate()
            watching.wait(10)


def test_watching_says_so_and_ends_by_an_interrupt_in_the_background(
    cli: Cli, folder: Path, collection: str, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    # What a shell without job control does for `&`.
    program = (
        "import runpy, signal, sys\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nsys.argv[0] = 'engram'\n"
        "runpy.run_module('engram.cli', run_name='__main__')"
    )
    command = ["-c", program, "sync", str(folder), "-c", collection, "--watch"]
    with output.open("wb") as log:
        watching = forks.ForkedProcess(command, cwd=cli.folder, env=cli.environment(), stdout=log, stderr=log)
        try:
            await_line(output, f"watching {folder}; Ctrl-C ends it")
            watching.send_signal(signal.SIGINT)
            assert watching.wait(20) == 0
        finally:
            watching.kill()
            watching.wait()


def await_line(output: Path, line: str) -> None:
    eventually(lambda: line in output.read_text().splitlines(), line)
