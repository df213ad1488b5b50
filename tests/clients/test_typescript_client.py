"""The TypeScript client: up to date, built, and run against a service, where there is a Node to do it with."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.forks import ROOT

CLIENT = ROOT / "clients" / "typescript"
pytestmark = pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client's folder as a clone has it, beside the document: nothing installed, nothing built."""
    root = tmp_path_factory.mktemp("clone")
    folder = root / "clients" / "typescript"
    shutil.copytree(CLIENT, folder, ignore=shutil.ignore_patterns("node_modules", "dist"))
    shutil.copytree(ROOT / "openapi", root / "openapi")
    return folder


@pytest.fixture(scope="module")
def linked(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project that installed the clone; what the clone needs was installed there for that."""
    project = make_project(tmp_path_factory.mktemp("linked"))
    run(project, "npm", "install", "--no-audit", "--no-fund", str(repository))
    return project


def run(folder: Path, *command: str, **env: str) -> str:
    done = subprocess.run(command, cwd=folder, env=os.environ | env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout.strip()


IMPORTED = 'import { Engram } from "engram-client"; console.log(new Engram({ collection: "notes" }).collection)'


def make_project(folder: Path) -> Path:
    """Make somebody's own project."""
    (folder / "package.json").write_text('{"name": "project", "type": "module"}')
    return folder


def import_package(project: Path) -> str:
    return run(project, "node", "--input-type=module", "--eval", IMPORTED)


@pytest.mark.timeout(300)  # a registry may be slow
def test_client_is_installed_from_the_repository(linked: Path) -> None:
    assert import_package(linked) == "notes"


@pytest.mark.usefixtures("linked", "working")
@pytest.mark.timeout(300)
def test_client_agrees_with_the_document_and_works(repository: Path, service: str) -> None:
    run(repository, "npm", "run", "check")
    run(repository, "node", "--test", "test/", ENGRAM_URL=service)  # installing it has built it


@pytest.mark.usefixtures("linked")
@pytest.mark.timeout(300)
def test_client_is_installed_from_its_tarball(repository: Path, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    run(repository, "npm", "pack", "--ignore-scripts", "--pack-destination", str(project))
    (tarball,) = project.glob("engram-client-*.tgz")
    run(project, "npm", "install", "--no-audit", "--no-fund", str(tarball))
    assert import_package(project) == "notes"
    installed = project / "node_modules" / "engram-client"
    assert (installed / "dist" / "index.d.ts").exists()
    assert not installed.is_symlink()
    assert not (installed / "src").exists()
