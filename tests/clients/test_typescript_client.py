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
def test_client_agrees_with_the_document_and_works(built: Path, service: str) -> None:
    npm(built, "run", "check")
    npm(built, "test", ENGRAM_URL=service)


IMPORTED = 'import { Engram } from "engram-client"; console.log(new Engram({ collection: "notes" }).collection)'


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """The client's folder as a clone has it: nothing installed, nothing built."""
    folder = tmp_path / "clients" / "typescript"
    shutil.copytree(CLIENT, folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Somebody's own project."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "package.json").write_text('{"name": "project", "type": "module"}')
    return folder


def import_package(project: Path) -> str:
    done = subprocess.run(
        ["node", "--input-type=module", "--eval", IMPORTED],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


@pytest.mark.timeout(300)
def test_client_is_installed_from_the_repository(repository: Path, project: Path) -> None:
    npm(project, "install", "--no-audit", "--no-fund", str(repository))
    assert import_package(project) == "notes"


@pytest.mark.timeout(300)
def test_client_is_installed_from_its_tarball(repository: Path, project: Path) -> None:
    npm(repository, "pack", "--pack-destination", str(project))
    (tarball,) = project.glob("engram-client-*.tgz")
    npm(project, "install", "--no-audit", "--no-fund", str(tarball))
    assert import_package(project) == "notes"
    installed = project / "node_modules" / "engram-client"
    assert (installed / "dist" / "index.d.ts").exists()
    assert not installed.is_symlink()
    assert not (installed / "src").exists()
