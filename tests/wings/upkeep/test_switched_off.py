"""Commands of upkeep while the wing is off: a line that says so, and nothing is done."""

from pathlib import Path

import pytest

from tests.support.command import UNREACHABLE_URL, Cli


@pytest.mark.parametrize("command", [("backup", "copy"), ("restore", "copy", "--replace"), ("doctor", "--json")])
def test_a_command_says_which_wing_is_off(command: tuple[str, ...], tmp_path: Path) -> None:
    data = tmp_path / "data"
    refused = Cli(tmp_path, UNREACHABLE_URL, data).fails(*command, ENGRAM_WINGS="local,history")
    assert refused == "engram: The wing 'upkeep' is off: add it to ENGRAM_WINGS.\n"
    assert not data.exists()
