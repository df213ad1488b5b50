"""What the scripts that write pages share: write, or with --check only say whether all is up to date."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path


def write(files: Mapping[Path, str], how: str, about: str | None) -> None:
    """Write what each file is to hold; asked by ``--check``, only end with an error that names those that differ.

    ``how`` says how they are brought up to date, ``about`` what the script does.
    """
    options = argparse.ArgumentParser(description=about)
    options.add_argument("--check", action="store_true", help="only say whether all is up to date")
    stale = [path for path, text in files.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if not options.parse_args().check:
        for path in stale:
            path.write_text(files[path], encoding="utf-8")
    elif stale:
        sys.exit(f"out of date, run {how}: {', '.join(path.name for path in stale)}")
