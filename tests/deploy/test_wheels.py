"""The wheels hold what runs, its types and its licence, and nothing else."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    ".": "engram",
    "clients/python": "engram_client",
    "evaluation": "engram_evaluation",
    "integrations/haystack": "engram_haystack",
    "integrations/langchain": "engram_langchain",
    "integrations/llamaindex": "engram_llamaindex",
    "integrations/mcp": "engram_mcp",
    "integrations/pull": "engram_pull",
}


READ = ("pyproject.toml", "LICENSE", "NOTICE", "README.md", "app", "migrations", "tests", "src")
"""What a build of any of the packages reads, and `tests`, which no wheel may take."""


def build_wheel(folder: str, tmp_path: Path) -> set[str]:
    """Build the wheel from a copy, since a build leaves folders behind, and list its files."""
    copy = tmp_path / "source"
    for name in READ:
        source = ROOT / folder / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(source, copy / name, symlinks=True, ignore=ignored)
        elif source.exists():
            copy.mkdir(exist_ok=True)
            shutil.copy(source, copy)
    # As pip does it, which reads what the package requires first: that takes as long as the build.
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=copy, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name or "licenses" in name}


@pytest.mark.parametrize(("folder", "package"), PACKAGES.items())
def test_a_wheel_has_its_types(folder: str, package: str, tmp_path: Path) -> None:
    files = build_wheel(folder, tmp_path)
    assert f"{package}/py.typed" in files
    assert {name.split("/")[0] for name in files if ".dist-info/" not in name} == {package}
    if folder == ".":
        for source, target in ((ROOT / "app", ""), (ROOT / "migrations", "engram/migrations/")):
            on_disk = [path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
            wanted = {f"{target}{path.relative_to(source)}" for path in on_disk if "egg-info" not in str(path)}
            assert wanted - files == set(), "package-data in pyproject.toml leaves them out"
        for name in ("LICENSE", "NOTICE"):
            assert any(f"licenses/{name}" in file for file in files)


def test_every_package_is_built() -> None:
    projects = [*ROOT.glob("*/pyproject.toml"), *ROOT.glob("*/*/pyproject.toml")]
    assert {str(path.parent.relative_to(ROOT)) for path in projects} == PACKAGES.keys() - {"."}
