"""`make` and .ci/run: what they say when something is missing."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from engram.providers.embedder.model_folder import INSTALL_WEIGHTS

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder whose name has a space, with what `make install` looks at."""
    folder = tmp_path / "my engram"
    folder.mkdir()
    files = ("Makefile", "pyproject.toml", "evaluation/pyproject.toml", "weights.txt", "tests/weights.txt")
    for name in files:
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", *arguments],
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )


def stand_in(folder: Path, script: str) -> str:
    """A program that plays Python."""
    program = folder / "stand-in"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


def test_a_missing_python_is_named(checkout: Path) -> None:
    done = make(checkout, "test", "PYTHON=python0.0")
    assert done.returncode != 0
    assert "There is no python0.0 here" in done.stderr
    assert not (checkout / ".venv").exists()


def test_make_run_fails_early_without_venv_module(checkout: Path) -> None:
    python = stand_in(checkout, 'case "$2" in *ensurepip*) exit 1;; esac')
    done = make(checkout, "run", f"PYTHON={python}")
    assert done.returncode != 0
    assert "has no venv module" in done.stderr
    assert not (checkout / ".venv").exists()


def install(checkout: Path, at: str) -> Path:
    """A virtual environment that looks like one installed at ``at``; returns its engram."""
    binaries = checkout / ".venv" / "bin"
    binaries.mkdir(parents=True)
    for name, text in {"python": "exit 0", "engram": 'echo "engram $*"'}.items():
        (binaries / name).write_text(f"#!/bin/sh\n{text}\n")
        (binaries / name).chmod(0o755)
    (checkout / ".venv" / ".installed").write_text(f"{at}\n")
    return binaries / "engram"


def test_an_installed_checkout_is_not_installed_again(checkout: Path) -> None:
    install(checkout, str(checkout))
    done = make(checkout, "run", "PYTHON=python0.0")
    assert (done.returncode, done.stdout) == (0, "engram up --sample\n"), done.stderr


def test_a_moved_checkout_is_installed_anew(checkout: Path) -> None:
    install(checkout, "/somewhere/else")
    done = make(checkout, "--dry-run", "run")
    assert "-m venv --clear" in done.stdout


def test_a_virtual_environment_whose_python_is_gone_is_installed_anew(checkout: Path) -> None:
    install(checkout, str(checkout)).with_name("python").unlink()
    done = make(checkout, "--dry-run", "run")
    assert "-m venv --clear" in done.stdout


def test_changed_requirements_are_installed_into_what_is_there(checkout: Path) -> None:
    install(checkout, str(checkout))
    os.utime(checkout / ".venv" / ".installed", (0, 0))
    done = make(checkout, "--dry-run", "run")
    assert "pip install" in done.stdout
    assert "--clear" not in done.stdout


def test_ci_runs_both_commands_and_fails_if_one_does(checkout: Path) -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    (checkout / ".ci").mkdir()
    shutil.copy(script, checkout / ".ci" / "run")
    (checkout / "Makefile").write_text(
        "develop:\ncheck:\n\t@false\ntest:\n\t@echo CI=$$CI ENGRAM_EVALUATION_DATA=$$ENGRAM_EVALUATION_DATA\n"
    )
    (default,) = re.findall(r"ENGRAM_EVALUATION_DATA:-\$PWD/(.+?)\}", script.read_text(encoding="utf-8"))
    for named, data in (({}, f"{checkout}/{default}"), ({"ENGRAM_EVALUATION_DATA": "/data"}, "/data")):
        env = {"PATH": os.environ["PATH"]} | named
        done = subprocess.run([checkout / ".ci" / "run"], env=env, capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert f"CI=true ENGRAM_EVALUATION_DATA={data}" in done.stdout


def test_running_needs_no_test_packages(checkout: Path) -> None:
    install(checkout, str(checkout))
    for beside in ROOT.glob("*/*/pyproject.toml"):  # clients and integrations, installed with what tests need
        target = checkout / beside.relative_to(ROOT)
        target.parent.mkdir(parents=True)
        shutil.copy(beside, target)
    assert "[dev]" not in make(checkout, "--dry-run", "--always-make", "run").stdout
    (checkout / ".venv" / ".developing").unlink(missing_ok=True)
    assert "--editable '.[dev]'" in make(checkout, "--dry-run", "test").stdout


def test_the_site_is_made_without_torch(checkout: Path) -> None:
    install(checkout, str(checkout))
    done = make(checkout, "--dry-run", "site")
    assert "--editable '.[site]'" in done.stdout
    assert "[dev]" not in done.stdout
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    assert {re.split(r"[<>=]", line)[0] for line in extras["site"]} == {"sphinx", "myst-parser", "furo"}


def test_everybody_names_the_same_weights_and_no_torch_is_required_for_them() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "weights.txt").read_text(encoding="utf-8").splitlines()
    pinned, hashed = [line.strip() for line in lines if not line.startswith("#")]
    weights = pinned.removesuffix("\\").strip()
    assert re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", hashed)
    assert weights in project["optional-dependencies"]["encoders"]
    assert weights in INSTALL_WEIGHTS
    required = {re.split(r"[<>=\[;]", line)[0] for line in project["dependencies"]}
    assert not required & {"torch", "transformers", "sentence-transformers", "onnx", weights.split("==")[0]}


def test_run_needs_no_more_than_it_says(tmp_path: Path) -> None:
    """Serving and fitting import nothing that the base install leaves out."""
    left_out = (
        "torch",
        "transformers",
        "sentence_transformers",
        "onnx",
        "sklearn",
        "scipy",
        "matplotlib",
        "bm25s",
        "ir_measures",
        "pytest",
    )
    program = f"""
import sys
for name in {left_out!r}:
    sys.modules[name] = None
from pathlib import Path
import engram.cli, engram.wings.local.sample.tour
from engram.composition import container
from engram.runtime import api_process, worker
from engram.wings.local.runtime import launcher
from engram.providers.language import load_language
load_language("en_core_web_sm").analyse_question("Who is Ada?")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
