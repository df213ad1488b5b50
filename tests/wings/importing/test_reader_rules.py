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
    rules = read_rules(tmp_path, "handbook")
    found = {
        name: rules.find(name)
        for name in (
            "handbook/a/b.txt",
            "handbook/pay/x/y.txt",
            "handbook/pay/open.txt",
            "handbook/keys.txt",
            "c",
        )
    }
    assert found == {
        "handbook/a/b.txt": ReadersOf(("group:staff",)),
        "handbook/pay/x/y.txt": ReadersOf(("group:hr", "user:ana")),
        "handbook/pay/open.txt": ReadersOf(None),
        "handbook/keys.txt": ReadersOf(()),
        "c": None,
    }


def test_a_folder_without_the_file_has_no_rule(tmp_path: Path) -> None:
    assert read_rules(tmp_path, "handbook").find("handbook/a.txt") is None


@pytest.mark.parametrize("line", ["pay/*", ": group:hr", "pay/*: hr", "pay/*: "])
def test_a_line_that_is_no_rule_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / FILE).write_text(f"*: group:staff\n{line}\n")
    with pytest.raises(InvalidRequestError, match="line 2: "):
        read_rules(tmp_path, "handbook")
