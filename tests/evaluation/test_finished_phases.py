"""The fingerprint of the code under which finished phases are kept."""

from pathlib import Path

import pytest

from engram_evaluation.finished_phases import CODE, code_fingerprint, fingerprint


def test_any_file_that_can_change_a_figure_changes_the_fingerprint(tmp_path: Path) -> None:
    room = tmp_path / "room"
    (room / "deeper").mkdir(parents=True)
    module = room / "deeper" / "module.py"
    module.write_text("A = 1\n")
    (room / "notes.md").write_text("A note.\n")
    first = fingerprint([room])
    (room / "notes.md").write_text("Another.\n")
    assert fingerprint([room]) == first
    module.write_text("A = 2\n")
    second = fingerprint([room])
    module.rename(room / "module.py")
    assert len({first, second, fingerprint([room])}) == 3


def test_a_folder_without_code_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="has no code"):
        fingerprint([tmp_path])


def test_the_service_and_the_evaluation_are_fingerprinted() -> None:
    folders = ["composition", "core", "providers", "services", "storage", "wings", "engram_evaluation"]
    assert [folder.name for folder in CODE] == folders
    assert code_fingerprint() == fingerprint(CODE)
