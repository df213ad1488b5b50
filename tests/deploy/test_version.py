"""One version number: pyproject.toml has it, everything else follows."""

import json
import runpy
import shutil
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

import engram

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "deploy" / "version.py"))


@pytest.fixture
def copy(script: dict[str, Any], tmp_path: Path) -> Path:
    """A folder with the files that state a version."""
    for name in ("pyproject.toml", *script["PLACES"]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def test_every_file_states_the_version(script: dict[str, Any]) -> None:
    assert script["main"](ROOT, check=True) == 0
    number = script["version"]()
    assert json.loads((ROOT / "openapi" / "openapi.json").read_text())["info"]["version"] == number
    assert engram.__version__ == number


def test_every_package_of_the_repository_is_looked_at(script: dict[str, Any]) -> None:
    manifests = {
        str(path.relative_to(ROOT))
        for pattern in (
            "*/pyproject.toml",
            "clients/*/pyproject.toml",
            "integrations/*/pyproject.toml",
            "*/package.json",
            "clients/*/package.json",
        )
        for path in ROOT.glob(pattern)
    }
    assert manifests <= script["PLACES"].keys()


def test_a_new_version_is_copied_everywhere(
    script: dict[str, Any], copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = copy / "pyproject.toml"
    project.write_text(project.read_text().replace(f'version = "{script["version"]()}"', 'version = "7.8.9"', 1))
    assert script["main"](copy, check=True) == 1
    complaint = capsys.readouterr().err
    assert all(name in complaint for name in script["PLACES"])
    assert script["main"](copy, check=False) == 0
    assert script["main"](copy, check=True) == 0
    for name in script["PLACES"]:
        assert "7.8.9" in (copy / name).read_text(), name


def test_integrations_accept_the_client_of_this_version(script: dict[str, Any]) -> None:
    manifests = list(ROOT.glob("integrations/*/pyproject.toml"))
    assert manifests
    for path in manifests:
        lines = tomllib.loads(path.read_text(encoding="utf-8"))["project"]["dependencies"]
        (client,) = [Requirement(line) for line in lines if line.startswith("engram-client")]
        assert script["version"]() in client.specifier, path
