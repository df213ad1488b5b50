"""Every setting is read somewhere, and a setting of a wing by that wing."""

import ast
from functools import cache
from pathlib import Path

import pytest

import engram
from engram.composition.wings import list_installed_wings
from engram.config.settings import Settings

APP = Path(engram.__file__).parent
MOST_SETTINGS = 70


@cache
def list_read_attributes(folder: Path) -> set[str]:
    """Names of attributes that the code of a folder reads, but for the settings themselves."""
    return {
        node.attr
        for path in folder.rglob("*.py")
        if path.parent != APP / "config"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
    }


def test_every_setting_is_read() -> None:
    # The command line reads ENGRAM_URL and ENGRAM_ACCESS_KEY from the environment, without the other settings.
    assert set(Settings.model_fields) - {"url", "access_key"} <= list_read_attributes(APP)


def test_variables_that_nothing_reads_are_listed() -> None:
    read = ["ENGRAM_URL", "ENGRAM_SESSIONS_STOP_WEIGHTS", "ENGRAM_AS", "ENGRAM_EVALUATION_DATA", "PATH"]
    removed = ["ENGRAM_KEEP_JOBS_DAYS", "ENGRAM_JWT_KEYS_URL"]
    assert Settings.list_unknown_variables([*removed, *read]) == sorted(removed)


def test_settings_are_few() -> None:
    assert len(Settings.model_fields) <= MOST_SETTINGS, "a constant beside its user does until somebody asks for it"


@pytest.mark.parametrize("wing", sorted(wing.name for wing in list_installed_wings()))
def test_settings_of_a_wing_are_read_by_that_wing_alone(wing: str) -> None:
    own = {name for name in Settings.model_fields if name.startswith(f"{wing}_")}
    assert own <= list_read_attributes(APP / "wings" / wing)
    core = {
        name
        for folder in APP.iterdir()
        if folder.is_dir() and folder.name != "wings"
        for name in list_read_attributes(folder)
    }
    assert not own & core
