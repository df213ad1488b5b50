"""Rules of versions by path."""

import json
from pathlib import Path
from uuid import uuid4

import pytest

from engram.context.errors import InvalidRequestError
from engram.wings.importing.conversion.version_rules import VersionRules, seal_version, unseal_version
from tests.support.command import Cli

NAMES = {"policies/2023/travel.md", "policies/2024/travel.md", "policies/2024/new.md", "old/hours.md", "hours.md"}
RULES = """# versions
policies/2023/: valid_from=2023-01-01, valid_until=2023-12-31
policies/2024/: valid_from=2024-01-01, supersedes=policies/2023/
/hours.md: supersedes=old/hours.md
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "rules.txt"
    path.write_text(RULES)
    return path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("policies/2023/travel.md", {"valid_from": "2023-01-01", "valid_until": "2023-12-31"}),
        ("policies/2024/travel.md", {"valid_from": "2024-01-01", "supersedes": "policies/2023/travel.md"}),
        pytest.param("policies/2024/new.md", {"valid_from": "2024-01-01"}, id="no earlier version"),
        ("hours.md", {"supersedes": "old/hours.md"}),
        pytest.param("old/hours.md", {}, id="no rule"),
    ],
)
def test_a_path_says_when_a_document_holds(path: Path, name: str, expected: dict[str, str]) -> None:
    assert VersionRules.read(path).find(name, NAMES) == expected


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("policies/", "is not `PATTERN: FIELD=VALUE`"),
        ("!policies/: valid_from=2024-01-01", "'!policies/' is no pattern of files"),
        ("policies/: since=2024", "'since=2024' is not one of"),
        ("policies/: valid_from=soon", "Invalid isoformat string"),
        ("*.md: supersedes=old/", "goes with a pattern that is a folder"),
    ],
)
def test_a_line_that_is_no_rule_is_refused(path: Path, line: str, reason: str) -> None:
    path.write_text(f"\n{line}\n")
    with pytest.raises(InvalidRequestError, match=r"rules\.txt, line 2: ") as refused:
        VersionRules.read(path)
    assert reason in refused.value.detail


def test_a_rule_that_matches_nothing_is_refused(path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="'policies/2023/' of --versions matches no document"):
        VersionRules.read(path).check({"hours.md"})


@pytest.mark.parametrize("claims", [{}, {"valid_from": "2024-01-01"}])
def test_a_sealed_version_is_opened_again(claims: dict[str, str]) -> None:
    assert unseal_version(seal_version('"etag" 17', claims)) == '"etag" 17'
    assert (seal_version("a", claims) == "a") is not bool(claims)


@pytest.mark.usefixtures("working")
def test_a_sync_applies_rules_and_their_changes(cli: Cli, tmp_path: Path, path: Path) -> None:
    folder, collection = tmp_path / "handbook", f"rules-{uuid4().hex[:8]}"
    for year, days in ((2023, 28), (2024, 30)):
        (folder / "policies" / str(year)).mkdir(parents=True)
        (folder / f"policies/{year}/leave.md").write_text(f"Employees have {days} days of leave.")
    (folder / "policies/2024/trips.md").write_text("---\nvalid_from: 2024-07-01\n---\nTrips are booked online.")
    path.write_text("".join(RULES.splitlines(keepends=True)[:3]))

    def list_dates() -> dict[str, tuple[str, str, str | None]]:
        listed = json.loads(cli("document", "list", "-c", collection, "--json").stdout)["documents"]
        return {one["source"]: (one["valid_from"], one["valid_until"], one["replaced_by"]) for one in listed}

    arguments = ("sync", str(folder), "-c", collection, "--versions", str(path))
    assert "3 uploaded" in cli(*arguments).stdout
    assert list_dates() == {
        "policies/2023/leave.md": ("2023-01-01", "2023-12-31", "policies/2024/leave.md"),
        "policies/2024/leave.md": ("2024-01-01", None, None),
        "policies/2024/trips.md": ("2024-07-01", None, None),
    }
    assert "all in step" in cli(*arguments).stdout
    path.write_text("policies/2023/: valid_until=2023-06-30\n")
    assert "3 uploaded" in cli(*arguments).stdout
    assert list_dates()["policies/2023/leave.md"][:2] == ("2023-01-01", "2023-06-30")  # the path has the year
