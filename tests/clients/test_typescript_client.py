"""The TypeScript client: up to date, built, and run against a service, where there is a Node to do it with."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.forks import ROOT

CLIENT = ROOT / "clients" / "typescript"
pytestmark = pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm")


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A copy with what it needs installed."""
    folder = tmp_path / "clients" / "typescript"
    shutil.copytree(CLIENT, folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    shutil.copytree(ROOT / "openapi", tmp_path / "openapi")
    npm(folder, "ci", "--no-audit", "--no-fund", "--ignore-scripts")
    return folder


def npm(folder: Path, *arguments: str, **env: str) -> None:
    done = subprocess.run(
        ["npm", *arguments], cwd=folder, env=os.environ | env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.usefixtures("working")
@pytest.mark.timeout(300)  # a registry may be slow
def test_it_is_what_the_document_says_and_works(built: Path, service: str) -> None:
    npm(built, "run", "check")
    npm(built, "test", ENGRAM_URL=service)
