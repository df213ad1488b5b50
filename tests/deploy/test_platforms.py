"""The table of Pythons and platforms in the operators' page; asking the package index anew takes minutes."""

import re
import subprocess
import sys

import pytest

from tests.support.forks import ROOT

PAGE = ROOT / "docs" / "operations.md"
TABLE = re.compile(r"<!-- wheels -->\n(.*)<!-- end of wheels -->", re.DOTALL)


def test_the_page_names_every_python_that_the_package_admits() -> None:
    table = TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert table is not None
    head, _, *rows = table[1].splitlines()
    assert [cell.strip() for cell in head.strip("|").split("|")][1:] == ["3.11", "3.12", "3.13", "3.14"]
    assert [row.split("|")[1].strip() for row in rows] == ["Linux x86-64", "Linux arm64", "macOS arm64"]


@pytest.mark.index
@pytest.mark.timeout(3600)
def test_the_index_has_the_wheels_that_the_page_states() -> None:
    done = subprocess.run(
        [sys.executable, "deploy/platforms.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
