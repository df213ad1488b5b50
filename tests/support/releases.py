"""Engram and its client as of another revision: their wheels, in an environment of their own.

Revisions are the release tags of this repository, and what ``OTHER_REVISIONS`` names besides: commits, or folders
that hold both wheels (separated by commas).
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

import engram.migrations
from tests.support.forks import ROOT

VARIABLE = "OTHER_REVISIONS"
TAGS = "v[0-9]*"
SOURCES = ("pyproject.toml", "LICENSE", "NOTICE", "README.md", "app", "migrations", "clients/python")
PACKAGES = (".", "clients/python")


def revisions() -> list[str]:
    """List release tags and the named revisions; empty in a clone that has neither."""
    listed = subprocess.run(
        ["git", "tag", "--list", TAGS, "--sort=version:refname"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,  # a copy of the files without the repository has no tags
    )
    named = [name.strip() for name in os.environ.get(VARIABLE, "").split(",")]
    return [*listed.stdout.split(), *filter(None, named)]


def add_revisions(folder: Path, *revisions: str) -> str:
    """Copy the migrations into a folder with revisions of a later version; the file of their package."""
    copied = folder / "migrations"
    package = Path(engram.migrations.__file__).resolve().parent
    shutil.copytree(package, copied, ignore=shutil.ignore_patterns("__pycache__"))
    for number, revision in enumerate(revisions, start=2):
        (copied / "versions" / f"{number:04}_later.py").write_text(revision, encoding="utf-8")
    return str(copied / "__init__.py")


def install(revision: str, folder: Path) -> Path:
    """Make an environment with the wheels of a revision, and return its Python.

    What they require is that of the running environment: nothing is downloaded.

    Args:
        revision: a tag, a commit, or a folder with the wheels of the service and of its client.
        folder: is made.

    Raises:
        ValueError: the revision has no wheel of one of the two packages.
        subprocess.CalledProcessError: the revision is unknown, or a wheel cannot be built or installed.
    """
    wheels = Path(revision) if Path(revision).is_dir() else _build(revision, folder / "build")
    files = [*wheels.glob("engram-*.whl"), *wheels.glob("engram_client-*.whl")]
    if len(files) != len(PACKAGES):
        raise ValueError(f"{wheels} holds {[file.name for file in files]}, and not one wheel of each package")
    environment = folder / "environment"
    venv.create(environment, symlinks=True)
    paths = {name: str(environment) for name in ("base", "platbase", "installed_base", "installed_platbase")}
    site = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    _run([*_PIP, "install", "--quiet", "--no-deps", "--no-compile", "--target", str(site), *map(str, files)])
    for path in sys.path:
        if Path(path).name == site.name:
            _link(Path(path), site)
    return environment / "bin" / "python"


def _link(shared: Path, site: Path) -> None:
    """Link the modules and distributions of an environment, but for packages of this repository."""
    for entry in shared.iterdir():
        own = entry.name.startswith(("engram", "__editable__")) or entry.suffix == ".pth"
        if not own and not (site / entry.name).exists():
            (site / entry.name).symlink_to(entry)


_PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


def _build(revision: str, folder: Path) -> Path:
    """Build the wheels of a tag or commit, and return their folder."""
    archive = _run(["git", "archive", "--format=tar", revision, "--", *SOURCES])
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(folder / "source", filter="data")
    wheels = folder / "wheels"
    sources = [str(folder / "source" / package) for package in PACKAGES]
    building = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(wheels)]
    _run([*_PIP, *building, *sources])
    return wheels


def _run(command: Sequence[str]) -> bytes:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
