"""The ``engram`` command in a process of its own."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support import forks
from tests.support.forks import ROOT

NOWHERE = "http://127.0.0.1:1"


@dataclass(frozen=True)
class Cli:
    """Runs the command in a folder without a .env file, told about the service only."""

    folder: Path
    service: str
    data: Path

    def __call__(self, *arguments: str | bytes, **env: str) -> "subprocess.CompletedProcess[str]":
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ENGRAM_", "DATABASE_"))}
        return forks.run(
            ["-m", "engram.cli", *map(os.fsdecode, arguments)],
            cwd=self.folder,
            env=kept
            | {"PYTHONPATH": str(ROOT)}
            | {"ENGRAM_URL": self.service, "ENGRAM_DATA_DIR": str(self.data)}
            | env,
            timeout=240,
        )

    def fails(self, *arguments: str | bytes, **env: str) -> str:
        """The one line on standard error of a command that fails."""
        done = self(*arguments, **env)
        assert done.returncode == 1, (done.stdout, done.stderr)
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1, done.stderr
        assert done.stderr.startswith("engram: ")
        return done.stderr
