"""Folders of documents, imported from the command line into a live service."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from engram.wings.importing.cli import document_lines
from engram.wings.importing.conversion import chunks
from tests.support.command import UNREACHABLE_URL, Cli
from tests.wings.importing.office_files import LOCK_FILE

FILES = Path(__file__).parent / "files"
pytestmark = pytest.mark.usefixtures("working")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    notes = tmp_path / "notes"
    (notes / "deep").mkdir(parents=True)
    (notes / "rivers.md").write_text(
        "# Rivers\n\nThe Danube is long.\n\n## Rhine\n\nThe Rhine ends in the North Sea.\n"
    )
    (notes / "deep" / "lakes.html").write_text(
        "<title>Lakes</title><body><p>Lake Constance lies in the Alps.</p></body>"
    )
    (notes / "towns.csv").write_text("id,name,text\nb,Basel,Basel lies on the Rhine.\n")
    for name in ("photo.gif", "song.mp3", "film.mp4", "font.ttf"):
        (notes / name).write_bytes(b"\x89PNG")
    (notes / ".hidden.txt").write_text("Not to be seen.")
    return notes


@pytest.fixture
def collection() -> str:
    return f"import-{uuid4().hex[:8]}"


def ids(cli: Cli, collection: str) -> list[str]:
    return [
        passage["id"]
        for passage in json.loads(cli("passage", "list", "-c", collection, "--json").stdout)["passages"]
    ]


def test_a_folder_is_imported_found_and_kept_in_step(cli: Cli, folder: Path, collection: str) -> None:
    done = cli("import", str(folder), "-c", collection)
    assert done.returncode == 0, done.stderr
    assert "left alone, being of other kinds: film.mp4, font.ttf, photo.gif, song.mp3\n" in done.stderr
    assert "3 files, 4 passages" in done.stdout
    assert ids(cli, collection) == [
        "deep/lakes.html#1",
        "rivers.md#1",
        "rivers.md#2",
        "towns.csv#b",
    ]

    found = json.loads(cli("query", "Where does the Rhine end?", "-c", collection, "--json").stdout)
    best = found["passages"][0]
    assert (best["passage_id"], best["title"]) == ("rivers.md#2", "Rivers")
    assert best["metadata"]["source"] == "rivers.md"
    assert best["metadata"]["heading"] == ["Rhine"]

    # A section went, a file went: the one by itself, the other by a sync.
    (folder / "rivers.md").write_text("# Rivers\n\nThe Danube is long.\n")
    (folder / "towns.csv").unlink()
    again = cli("import", str(folder), "-c", collection)
    assert "no longer in the folder (`engram sync` deletes them): towns.csv" in again.stdout
    assert ids(cli, collection) == ["deep/lakes.html#1", "rivers.md#1", "towns.csv#b"]
    renamed = folder.rename(folder.with_name("renamed"))
    for _ in range(2):  # documents of a folder with an earlier name stay in its reach
        told = json.loads(cli("import", str(renamed), "-c", collection, "--json").stdout)
        assert told["orphans"] == ["towns.csv"]
        assert told["jobs"][0]["unchanged"] == 2
    assert cli("sync", str(renamed), "-c", collection).stdout == "2 files: 1 deleted\n"
    assert ids(cli, collection) == ["deep/lakes.html#1", "rivers.md#1"]


def test_unreadable_file_neither_stops_the_import_nor_deletes_passages(
    cli: Cli, folder: Path, collection: str
) -> None:
    assert cli("import", str(folder), "-c", collection).returncode == 0
    before = ids(cli, collection)
    (folder / "towns.csv").write_text("id,text\n")
    (folder / "more.txt").write_text("The Elbe rises in the Giant Mountains.")
    done = cli("import", str(folder), "-c", collection)
    assert done.returncode == 1
    assert "towns.csv has no text." in done.stderr
    assert ids(cli, collection) == sorted([*before, "more.txt#1"])


def test_passages_can_be_written_to_a_file_instead(cli: Cli, folder: Path, tmp_path: Path) -> None:
    lines = tmp_path / "corpus.jsonl"
    done = cli("import", str(folder / "rivers.md"), "--out", str(lines), ENGRAM_URL=UNREACHABLE_URL)
    assert done.returncode == 0, done.stderr
    document, *passages = map(json.loads, lines.read_text().splitlines())
    assert (document["source"], document["pages"], document["folder"]) == ("rivers.md", None, None)
    assert [(passage["id"], passage["document"]) for passage in passages] == [
        ("rivers.md#1", "rivers.md"),
        ("rivers.md#2", "rivers.md"),
    ]


def test_sizes_are_those_of_the_service() -> None:
    assert (document_lines.SIZE, document_lines.OVERLAP) == (chunks.SIZE, chunks.OVERLAP)


def test_broken_files_links_and_encodings_cost_a_line_each(
    cli: Cli, folder: Path, collection: str, tmp_path: Path
) -> None:
    (folder / "deep.html").write_bytes(b"<div>" * 100_000 + b"x")
    (folder / "report.docx").write_bytes(b"not a zip")
    (folder / "cafe.txt").write_bytes("Café Zürich".encode("latin-1"))
    (tmp_path / "secret.txt").write_text("Secret.")
    (folder / "away.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "staff.pdf").write_bytes((FILES / "handbook.pdf").read_bytes())
    done = cli("import", str(folder), "-c", collection)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    for line in (
        "not followed, being links that leave the folder: away.txt",
        "cafe.txt: read as Windows-1252, because it is not UTF-8",
        "deep.html nests more than 300 elements in each other.",
        "report.docx is not what its name says: it is no zip file.",
    ):
        assert lines.count(line) == 1, done.stderr
    listed = json.loads(cli("passage", "list", "-c", collection, "--json").stdout)["passages"]
    assert not any("Secret" in passage["text"] for passage in listed)
    assert [passage["metadata"]["page"] for passage in listed if "staff.pdf" in passage["id"]] == [1, 1, 2, 3]
    below = cli("query", "allowance", "-c", collection, "--filter", 'heading=["Travel"]', "--json")
    assert {passage["metadata"]["source"] for passage in json.loads(below.stdout)["passages"]} == {"staff.pdf"}


def test_import_errors_are_one_line(cli: Cli, folder: Path) -> None:
    assert "is not there" in cli.fails("import", str(folder / "nothing"))
    assert "none of the kinds" in cli.fails("import", str(folder / "photo.gif"))
    lock = folder / "~$staff.docx"
    lock.write_bytes(LOCK_FILE)
    alone = cli("import", str(lock))
    assert alone.returncode == 1
    assert alone.stderr.splitlines() == [
        "left alone, only marking files that Office has open: ~$staff.docx",
        "engram: There is nothing to import.",
    ]
    assert "smaller" in cli.fails("import", str(folder), "--overlap", "1200")


def test_a_file_that_differs_from_its_plain_text_fails_only_if_strict(
    cli: Cli, folder: Path, collection: str
) -> None:
    (folder / "prices.html").write_text(  # an element without an end, which swallows tags and joins figures
        "<title>T</title><p>Prices</p><xmp>The pump costs 77 or 88</xmp><plaintext>55 or 66 or 99"
    )
    note = "prices.html: 3 figures differ from the plain text of the file: 88, 55, 8855"
    done = cli("import", str(folder), "-c", collection, "--strict")
    assert done.returncode == 1
    assert note in done.stderr.splitlines()
    assert "prices.html: not imported, as --strict says" in done.stderr
    assert not any(one.startswith("prices.html") for one in ids(cli, collection))
    done = cli("import", str(folder), "-c", collection)
    assert (done.returncode, note in done.stderr.splitlines()) == (0, True)
    assert "prices.html#1" in ids(cli, collection)
