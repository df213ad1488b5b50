"""The Dockerfile, as far as it can be judged without Docker."""

import ast
import json
import re
from pathlib import Path

import pytest

from engram.cli import cli
from engram.config.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
Instruction = tuple[str, str]


def parse(text: str) -> list[Instruction]:
    """(instruction, arguments) in order, comments gone and continued lines joined."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [
        (line.split(None, 1)[0], line.split(None, 1)[1].strip()) for line in joined.splitlines() if line.strip()
    ]


INSTRUCTIONS = parse(TEXT)
LAST_STAGE = INSTRUCTIONS[max(at for at, (name, _) in enumerate(INSTRUCTIONS) if name == "FROM") :]


def find_instruction(instructions: list[Instruction], name: str) -> str:
    (found,) = [arguments for instruction, arguments in instructions if instruction == name]
    return found


def test_the_base_image_names_its_version() -> None:
    assert re.search(r"^ARG PYTHON_IMAGE=python:3\.\d+-slim-\w+$", TEXT, re.MULTILINE)
    assert {arguments.split()[0] for name, arguments in INSTRUCTIONS if name == "FROM"} == {"${PYTHON_IMAGE}"}


def test_image_runs_as_a_numbered_user() -> None:
    user = find_instruction(LAST_STAGE, "USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)  # a number: Kubernetes can then verify that it is not root
    assert f"--uid {user.split(':')[0]}" in " ".join(arguments for _, arguments in LAST_STAGE)


def test_entry_point_and_command_are_lists_that_the_command_line_knows() -> None:
    assert json.loads(find_instruction(LAST_STAGE, "ENTRYPOINT")) == ["engram"]
    (subcommand,) = json.loads(find_instruction(LAST_STAGE, "CMD"))
    assert subcommand in {
        command.name or command.callback.__name__ for command in cli.registered_commands if command.callback
    }


def test_the_health_check_is_a_program_over_healthz() -> None:
    check = find_instruction(LAST_STAGE, "HEALTHCHECK")
    program, flag, script = json.loads(check[check.index("[") :])
    assert (program, flag) == ("python", "-c")
    ast.parse(script)
    assert "/healthz" in script


def test_every_variable_is_a_setting() -> None:
    settings = {f"ENGRAM_{name.upper()}" for name in Settings.model_fields}
    assert set(re.findall(r"\b(ENGRAM_\w+)=", TEXT)) <= settings


def test_python_in_run_instructions_parses() -> None:
    scripts = re.findall(
        r'python -c "([^"]*)"', " ".join(arguments for name, arguments in INSTRUCTIONS if name == "RUN")
    )
    assert scripts
    for script in scripts:
        ast.parse(script)


def list_copied() -> list[str]:
    """Sources of COPY in the build context."""
    sources = []
    for name, arguments in INSTRUCTIONS:
        if name == "COPY" and "--from" not in arguments:
            sources += arguments.split()[:-1]
    return sources


@pytest.mark.parametrize("source", list_copied())
def test_copied_paths_exist_and_are_not_ignored(source: str) -> None:
    assert (ROOT / source).exists()
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert f"!{source}" in kept


def test_everything_installed_is_copied() -> None:
    wanted = {
        "pyproject.toml",
        "requirements.lock",
        "weights.txt",
        "sbom.json",
        "README.md",
        "LICENSE",
        "NOTICE",
        "app",
        "migrations",
    }
    assert wanted == set(list_copied())


def test_no_file_that_installs_names_a_registry() -> None:
    for name in ("Dockerfile", "docker-compose.yml", ".env.example", "Makefile", "pyproject.toml", ".ci/run"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert not re.search(r"pypi\.|pytorch\.org|docker\.io|ghcr\.io|quay\.io", text), name
