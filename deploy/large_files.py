"""Refuse tracked files over 1 MB: every clone downloads them, and their history stays.

python deploy/large_files.py     exits with 1 and names each such file that is not in LARGE_FILES
"""

import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAX_BYTES = 1_000_000
LARGE_FILES: frozenset[str] = frozenset()
"""Paths of tracked files that may be larger."""


def find_large_files(root: Path, allowed: Collection[str] = LARGE_FILES) -> list[str]:
    """Name the tracked files of a checkout over ``MAX_BYTES`` that are not allowed."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    names = (name for name in listed.stdout.split("\0") if name and (root / name).is_file())
    return [name for name in names if name not in allowed and (root / name).lstat().st_size > MAX_BYTES]


if __name__ == "__main__":
    large = find_large_files(ROOT)
    if large:
        sys.exit(
            f"Over {MAX_BYTES:,} bytes: {', '.join(large)}. Leave them out, or list them in {Path(__file__).name}."
        )
