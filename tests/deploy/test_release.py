"""What `make release` makes of the changelog and of its own files; the wheels' tour asks the package index."""

import hashlib
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.deploy.test_wheels import PACKAGES
from tests.support.forks import ROOT

SCRIPT = ROOT / "deploy" / "release.py"
CHANGELOG = (
    "# Changelog\n\n## Unreleased\n\n- Next.\n\n## 0.2.0 - 2027-01-05\n\n### Added\n\n- A.\n\n## [0.1.0]\n\n- B.\n"
)


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("deploy_release", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("version", "notes"),
    [
        ("0.2.0", "# Engram 0.2.0\n\n### Added\n\n- A.\n"),
        ("0.1.0", "# Engram 0.1.0\n\n- B.\n"),
        ("0.3.0", "# Engram 0.3.0\n\n- Next.\n"),
    ],
)
def test_notes_are_the_section_of_the_version(release: ModuleType, version: str, notes: str) -> None:
    assert release.extract_notes(CHANGELOG, version) == notes


def test_a_changelog_without_sections_is_refused(release: ModuleType) -> None:
    with pytest.raises(ValueError, match="no section 1"):
        release.extract_notes("# Changelog\n", "1")


def test_checksums_are_as_sha256sum_reads_them(release: ModuleType, tmp_path: Path) -> None:
    for name in ("b.whl", "a.tar.gz", release.CHECKSUMS):
        (tmp_path / name).write_text(name)
    release.write_checksums(tmp_path)
    first, second = (hashlib.sha256(name.encode()).hexdigest() for name in ("a.tar.gz", "b.whl"))
    assert (tmp_path / release.CHECKSUMS).read_text() == f"{first}  a.tar.gz\n{second}  b.whl\n"
    done = subprocess.run(
        ["sha256sum", "--check", release.CHECKSUMS], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_package_is_released(release: ModuleType) -> None:
    assert set(release.PACKAGES) == PACKAGES.keys()


@pytest.mark.parametrize(("engine", "builder"), [("exit 0", "docker"), ("exit 1", "buildah")])
def test_docker_builds_the_image_only_where_its_engine_answers(
    release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, builder: str
) -> None:
    for name, script in {"docker": engine, "buildah": "exit 0"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert release.find_image_builder() == builder


def test_a_missing_image_builder_is_named_before_anything_is_built(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT],
        env=os.environ | {"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "neither a Docker engine nor buildah is here" in done.stderr
