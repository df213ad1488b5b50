"""The script that docs/readers.md gives for a directory's groups and a file server's rights."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "docs" / "readers_manifest.py"


def test_groups_inside_a_group_read_what_it_reads(tmp_path: Path) -> None:
    members, rights = tmp_path / "members.csv", tmp_path / "rights.csv"
    members.write_text("group,member\nall,staff\nstaff,hr\nhr,ana\nhr,all\nguests,bo\n")
    rights.write_text("path,who\nrules.md,all\nrules.md,cy\npay.md,hr\nmenu.md,guests\n")
    done = subprocess.run([sys.executable, SCRIPT, members, rights], capture_output=True, text=True, check=True)
    entries = {one["source"]: one["readers"] for one in map(json.loads, done.stdout.splitlines())}
    assert entries == {
        "menu.md": ["group:guests"],
        "pay.md": ["group:all", "group:hr", "group:staff"],
        "rules.md": ["group:all", "group:hr", "group:staff", "user:cy"],
    }
