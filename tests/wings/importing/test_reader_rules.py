"""Readers of an imported folder."""

from pathlib import Path

import pytest

from engram.context.errors import InvalidRequestError
from engram.wings.importing.conversion.reader_rules import FILE, ReadersOf, read_rules


def test_the_last_rule_that_matches_counts(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(
        "# who may read what\n*: group:staff\n\n"
        "pay/*: group:hr, user:ana\npay/open.txt: everyone\nkeys.txt: nobody\n"
    )
    rules = read_rules(tmp_path)
    assert {
        name: rules.find(tmp_path / name) for name in ("a/b.txt", "pay/x/y.txt", "pay/open.txt", "keys.txt")
    } == {
        "a/b.txt": ReadersOf(("group:staff",)),
        "pay/x/y.txt": ReadersOf(("group:hr", "user:ana")),
        "pay/open.txt": ReadersOf(None),
        "keys.txt": ReadersOf(()),
    }


def test_a_folder_without_the_file_has_no_rule(tmp_path: Path) -> None:
    assert read_rules(tmp_path).find(tmp_path / "a.txt") is None


@pytest.mark.parametrize("line", ["pay/*", ": group:hr", "pay/*: hr", "pay/*: "])
def test_a_line_that_is_no_rule_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / FILE).write_text(f"*: group:staff\n{line}\n")
    with pytest.raises(InvalidRequestError, match="line 2: "):
        read_rules(tmp_path)
