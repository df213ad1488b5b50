"""Readers of documents as a connector exports them."""

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from engram.context.errors import InvalidRequestError
from engram.wings.importing.conversion.reader_rules import ReadersOf
from engram.wings.importing.sources.readers_manifest import read_manifest
from tests.support.command import Cli

ENTRIES = [
    {"source": "lakes.txt", "readers": ["user:ana", "group:hr"]},
    {"source": "towns.txt", "readers": None},
    {"source": "roads.txt", "readers": []},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in ("lakes", "towns", "roads", "hills"):
        (folder / f"{name}.txt").write_text(f"All {name} are in the north.")
    (folder / "photo.gif").write_bytes(b"\x89PNG")
    return folder


@pytest.fixture
def collection() -> str:
    return f"manifest-{uuid4().hex[:8]}"


def write(folder: Path, entries: list[Any]) -> str:
    path = folder.parent / "readers.json"
    path.write_text("\n".join(map(json.dumps, entries)))
    return str(path)


def explain(cli: Cli, collection: str, name: str) -> list[str] | None:
    asked = cli("access", "explain", f"{name}.txt#1", "-c", collection, "--as", "group:hr", "--json")
    readers: list[str] | None = json.loads(asked.stdout)["readers"]
    return readers


@pytest.mark.usefixtures("working")
def test_a_manifest_names_the_readers_of_each_document(cli: Cli, folder: Path, collection: str) -> None:
    path = write(folder, [*ENTRIES, {"source": "photo.gif", "readers": None}])
    done = cli("sync", str(folder), "-c", collection, "--readers", path, "--default-readers", "nobody")
    assert done.returncode == 0, done.stderr
    assert f"read by nobody, as no line of {path} names them: hills.txt" in done.stderr
    names = ("lakes", "towns", "roads", "hills")
    assert [explain(cli, collection, name) for name in names] == [["group:hr", "user:ana"], None, [], []]
    write(folder, [{"source": "lakes.txt", "readers": ["group:hr"]}, *ENTRIES[1:]])
    arguments = ("sync", str(folder), "-c", collection, "--readers", path, "--default-readers", "everyone")
    assert "2 changed" in cli(*arguments).stdout
    assert [explain(cli, collection, name) for name in names] == [["group:hr"], None, [], None]
    (folder / ".engram-readers").write_text("*: everyone\nlakes.txt: group:staff\ntowns.txt: group:staff\n")
    cli(*arguments)  # those who are readers by both
    assert [explain(cli, collection, name) for name in names] == [[], ["group:staff"], [], None]


@pytest.mark.usefixtures("working")
def test_a_default_opens_what_no_rule_names_and_nothing_once_the_rules_are_lost(
    cli: Cli, folder: Path, collection: str
) -> None:
    (folder / ".engram-readers").write_text("lakes.txt: group:hr\n")
    arguments = ("sync", str(folder), "-c", collection, "--default-readers", "everyone")
    assert "read by everyone, as no line of .engram-readers names them" in cli(*arguments).stderr
    assert [explain(cli, collection, name) for name in ("lakes", "towns")] == [["group:hr"], None]
    (folder / ".engram-readers").unlink()
    (folder / "bays.txt").write_text("The bay is deep.")
    cli(*arguments)
    assert [explain(cli, collection, name) for name in ("lakes", "bays")] == [["group:hr"], []]


@pytest.mark.parametrize(("default", "readers"), [("everyone", ["group:hr", "user:ana"]), ("nobody", [])])
def test_a_link_is_read_by_the_readers_of_its_file(
    cli: Cli, folder: Path, default: str, readers: list[str]
) -> None:
    (folder / "link.txt").symlink_to("lakes.txt")
    (folder / "chain.txt").symlink_to("link.txt")
    (folder / "all").symlink_to(".")
    (folder / "lost.txt").symlink_to("gone.txt")
    out = folder.parent / "out.jsonl"
    path = write(folder, ENTRIES)
    done = cli("import", str(folder), "--readers", path, "--default-readers", default, "--out", str(out))
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    found = {line["id"]: line["readers"] for line in lines if "text" in line}
    assert [found["link.txt#1"], found["chain.txt#1"]] == [readers, readers]
    named = "hills.txt" if default == "everyone" else "chain.txt, hills.txt, link.txt"
    assert f"read by {default}, as no line of {path} names them: {named}\n" in done.stderr
    assert "not followed, being links to a folder or to nothing: all, lost.txt\n" in done.stderr


def test_what_is_refused(cli: Cli, folder: Path, collection: str) -> None:
    (folder / "photo.gif").unlink()
    command = ("sync", str(folder), "-c", collection, "--readers")
    path = write(folder, ENTRIES)
    assert "Give --default-readers nobody, or everyone." in cli.fails(*command, path)
    path = write(folder, [*ENTRIES, {"source": "seas.txt", "readers": []}])
    assert "names what is not there: seas.txt" in cli.fails(*command, path, "--default-readers", "nobody")
    assert "--readers names them here" in cli.fails(*command, "group:hr", "--default-readers", "nobody")
    assert "--readers: " in cli.fails(*command, str(folder / "lost.json"), "--default-readers", "nobody")


def test_a_manifest_may_be_a_list(tmp_path: Path) -> None:
    path = tmp_path / "readers.json"
    path.write_text(json.dumps(ENTRIES[:1], indent=1))
    assert read_manifest(path) == {"lakes.txt": ReadersOf(("group:hr", "user:ana"))}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "cannot be read"),
        ('{"source": "a", "reader": []}', "entry 1: an entry is"),
        ('{"source": "a", "readers": "everyone"}', "no list of names"),
        ('{"source": "a", "readers": ["hr"]}', "is user:NAME or group:NAME"),
        ('{"source": "", "readers": []}', "its source is no name"),
        ('{"source": "a", "readers": []}\n{"source": "a", "readers": null}', "entry 2: 'a' has an entry before"),
    ],
)
def test_an_entry_that_is_none_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "readers.json"
    path.write_text(text)
    with pytest.raises(InvalidRequestError, match=reason):
        read_manifest(path)
