"""Readers of imported files, by rules files in and above their folders."""

from pathlib import Path

import pytest

from engram.context.errors import InvalidRequestError
from engram.wings.importing.conversion.reader_rules import FILE, ReaderRules, ReadersOf

NOBODY, EVERYONE = ReadersOf(()), ReadersOf(None)
HR, STAFF = ReadersOf(("group:hr",)), ReadersOf(("group:staff",))


@pytest.fixture
def handbook(tmp_path: Path) -> Path:
    for name in ("hours.txt", "keys.txt", "pay/open.txt", "pay/x/y.txt", "a/pay/b.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("Text.")
    return tmp_path


def find(folder: Path, *names: str) -> dict[str, ReadersOf | None]:
    paths = {name: folder / name for name in names}
    rules = ReaderRules.read(paths.values())
    return {name: rules.find(path, NOBODY) for name, path in paths.items()}


def test_the_last_line_that_matches_counts(handbook: Path) -> None:
    (handbook / FILE).write_text(
        "# who may read what\n*: group:staff\n\n"
        "pay/*: group:hr, user:ana\npay/open.txt: everyone\nkeys.txt: nobody\n"
    )
    assert find(handbook, "a/pay/b.txt", "pay/x/y.txt", "pay/open.txt", "keys.txt") == {
        "a/pay/b.txt": STAFF,
        "pay/x/y.txt": ReadersOf(("group:hr", "user:ana")),
        "pay/open.txt": EVERYONE,
        "keys.txt": NOBODY,
    }


def test_files_without_rules_above_have_no_readers(handbook: Path) -> None:
    assert find(handbook, "hours.txt") == {"hours.txt": None}


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("pay/*", {"pay/open.txt", "pay/x/y.txt"}),
        ("/pay/*", {"pay/open.txt", "pay/x/y.txt"}),
        ("pay/", {"pay/open.txt", "pay/x/y.txt", "a/pay/b.txt"}),
        ("/pay", {"pay/open.txt", "pay/x/y.txt"}),
        ("**/y.txt", {"pay/x/y.txt"}),
        ("[hk]*.txt", {"hours.txt", "keys.txt"}),
    ],
)
def test_patterns_are_read_as_git_reads_them(handbook: Path, pattern: str, matched: set[str]) -> None:
    (handbook / FILE).write_text(f"{pattern}: group:hr\n")
    found = find(handbook, "hours.txt", "keys.txt", "pay/open.txt", "pay/x/y.txt", "a/pay/b.txt")
    assert {name for name, readers in found.items() if readers == HR} == matched
    assert {readers for name, readers in found.items() if name not in matched} == {NOBODY}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_a_byte_order_mark_and_any_line_end_are_read(handbook: Path, encoding: str, line_end: str) -> None:
    (handbook / FILE).write_bytes(f"/pay/: group:hr{line_end}keys.txt: group:staff{line_end}".encode(encoding))
    assert find(handbook, "pay/open.txt", "keys.txt") == {"pay/open.txt": HR, "keys.txt": STAFF}


def test_names_are_compared_as_unicode_composes_them(handbook: Path) -> None:
    (handbook / "Gehälter").mkdir()
    (handbook / "Gehälter" / "a.txt").write_text("Text.")
    (handbook / FILE).write_text("Gehälter/: group:hr\n")
    assert find(handbook, "Gehälter/a.txt") == {"Gehälter/a.txt": HR}


@pytest.mark.parametrize("name", ["pay/x/y.txt", "pay/open.txt"])
def test_a_file_or_folder_named_by_itself_is_ruled_from_above(handbook: Path, name: str) -> None:
    (handbook / FILE).write_text("*: everyone\npay/*: group:hr\n")
    assert find(handbook, name) == {name: HR}


def test_the_rules_deepest_in_the_tree_go_first(handbook: Path) -> None:
    (handbook / FILE).write_text("*: group:staff\n")
    (handbook / "pay" / FILE).write_text("/x/: group:hr\n")
    assert find(handbook, "hours.txt", "pay/open.txt", "pay/x/y.txt") == {
        "hours.txt": STAFF,
        "pay/open.txt": STAFF,
        "pay/x/y.txt": HR,
    }


def test_a_file_that_no_line_names_has_the_default(handbook: Path) -> None:
    (handbook / FILE).write_text("pay/*: group:hr\n")
    rules = ReaderRules.read([handbook / "hours.txt", handbook / "pay" / "open.txt"])
    assert rules.find(handbook / "hours.txt", STAFF) == STAFF
    assert rules.is_unruled(handbook / "hours.txt")
    assert not rules.is_unruled(handbook / "pay" / "open.txt")


def test_an_empty_rules_file_closes_its_folder(handbook: Path) -> None:
    (handbook / FILE).write_text("")
    assert find(handbook, "hours.txt") == {"hours.txt": NOBODY}


def test_a_link_has_no_more_readers_than_its_file(handbook: Path) -> None:
    (handbook / "news.txt").symlink_to(handbook / "pay" / "open.txt")
    (handbook / "pay" / "hours.txt").symlink_to(handbook / "hours.txt")
    (handbook / FILE).write_text("*: everyone\npay/*: group:hr, group:boss\n/hours.txt: group:hr, group:staff\n")
    assert find(handbook, "news.txt", "pay/hours.txt") == {
        "news.txt": ReadersOf(("group:boss", "group:hr")),
        "pay/hours.txt": HR,
    }


@pytest.mark.parametrize(
    "line",
    [
        "pay/*",
        ": group:hr",
        "pay/*: hr",
        "pay/*: ",
        "pay/*: group:hr # only hr",
        "pay/*: group:hr; group:boss",
        "pay/*: group:hr group:boss",
        "pay/*: group:*",
        "pay/*: group:hr\u200b",
        "pay/*: everyone, group:hr",
        "!pay/*: group:hr",
        "/: group:hr",
        "./pay/*: group:hr",
        "PAY/*: group:hr",
        "pay/z.txt: group:hr",
    ],
)
def test_a_line_that_is_no_rule_or_matches_nothing_is_named(handbook: Path, line: str) -> None:
    (handbook / FILE).write_text(f"*: group:staff\n{line}\n")
    with pytest.raises(InvalidRequestError, match="line 2: "):
        find(handbook, "hours.txt")


def test_a_line_that_later_lines_undo_is_named(handbook: Path) -> None:
    (handbook / FILE).write_text("pay/*: group:hr\n*: everyone\n")
    with pytest.raises(InvalidRequestError, match="line 1: later lines match"):
        find(handbook, "hours.txt")


@pytest.mark.parametrize("name", [".engram-readers.txt", "engram-readers", ".Engram_Readers"])
def test_a_rules_file_with_another_name_is_refused(handbook: Path, name: str) -> None:
    (handbook / name).write_text("pay/*: group:hr\n")
    with pytest.raises(InvalidRequestError, match="Rename it"):
        find(handbook, "pay/open.txt")


def test_other_files_and_folders_may_have_such_a_name(handbook: Path) -> None:
    (handbook / "engram-readers.md").write_text("How rules work.")
    (handbook / "engram-readers").mkdir()
    assert find(handbook, "hours.txt") == {"hours.txt": None}


def test_a_rules_file_that_cannot_be_read_is_refused(handbook: Path) -> None:
    (handbook / FILE).symlink_to(handbook / "gone")
    with pytest.raises(InvalidRequestError, match="no file that can be read"):
        find(handbook, "pay/open.txt")
    (handbook / FILE).unlink()
    (handbook / FILE).write_bytes("pay/*: group:hr\n".encode("utf-16"))
    with pytest.raises(InvalidRequestError, match="cannot be read"):
        find(handbook, "pay/open.txt")
