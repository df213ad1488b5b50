"""The check that refuses large tracked files."""

import runpy
import subprocess
from pathlib import Path

SCRIPT = runpy.run_path(str(Path(__file__).resolve().parents[2] / "deploy" / "large_files.py"))


def test_large_tracked_files_are_found_unless_listed(tmp_path: Path) -> None:
    for name in ("large.bin", "listed.bin", "untracked.bin"):
        (tmp_path / name).write_bytes(bytes(SCRIPT["MAX_BYTES"] + 1))
    (tmp_path / "small.bin").write_bytes(bytes(SCRIPT["MAX_BYTES"]))
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "large.bin", "listed.bin", "small.bin"], cwd=tmp_path, check=True)
    assert SCRIPT["find_large_files"](tmp_path, {"listed.bin"}) == ["large.bin"]
