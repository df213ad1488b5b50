"""The ``engram`` command in a process of its own."""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tests.support import forks
from tests.support.environment import inherit_environment
from tests.support.forks import ROOT

UNREACHABLE_URL = "http://127.0.0.1:1"


@dataclass(frozen=True)
class Cli:
    """Runs the command in a folder without a .env file, told about the service only.

    Attributes:
        module: what Python runs.
        constants: MODULE:NAME -> value that this constant of Engram has in the command, such as a shorter wait.
    """

    folder: Path
    service: str
    data: Path
    constants: Mapping[str, float] = field(default_factory=dict)
    module: str = "engram.cli"

    def __call__(self, *arguments: str | bytes, **env: str) -> "subprocess.CompletedProcess[str]":
        command = ["-m", self.module, *map(os.fsdecode, arguments)]
        return forks.run(command, cwd=self.folder, env=self.environment() | env, timeout=240)

    def begin(self, *arguments: str, output: IO[bytes]) -> forks.ForkedProcess:
        """Start the command and return while it runs; everything it prints goes to ``output``."""
        command = ["-m", self.module, *arguments]
        return forks.ForkedProcess(command, cwd=self.folder, env=self.environment(), stdout=output, stderr=output)

    def environment(self) -> dict[str, str]:
        """What the command sees of the environment."""
        return inherit_environment() | {
            "PYTHONPATH": str(ROOT),
            "ENGRAM_URL": self.service,
            "ENGRAM_DATA_DIR": str(self.data),
            **{place: json.dumps(value) for place, value in self.constants.items()},
        }

    def fails(self, *arguments: str | bytes, **env: str) -> str:
        """The one line on standard error of a command that fails."""
        done = self(*arguments, **env)
        assert done.returncode == 1, (done.stdout, done.stderr)
        assert done.stdout == ""
        assert done.stderr.count("\n") == 1, done.stderr
        assert done.stderr.startswith("engram: ")
        return done.stderr
