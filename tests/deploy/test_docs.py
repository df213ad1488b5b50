"""The documentation agrees with the program."""

import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

from app.cli import cli
from app.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_settings_page_is_up_to_date() -> None:
    page = runpy.run_path(str(ROOT / "docs" / "settings.py"))
    assert (ROOT / "docs" / "settings.md").read_text(encoding="utf-8") == page["document"](), "run `make docs`"


def test_every_setting_is_described() -> None:
    for name, field in Settings.model_fields.items():
        assert field.description, name
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert page.count("\n| `") == len(Settings.model_fields)


def test_links_in_the_documentation_lead_somewhere() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (page.parent / target).exists(), (page.name, target)


def test_every_command_is_mentioned() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    for command in cli.registered_commands:
        assert command.callback is not None
        assert f"engram {command.name or command.callback.__name__}" in page


def test_every_variable_in_the_readme_is_a_setting() -> None:
    known = {f"ENGRAM_{name.upper()}" for name in Settings.model_fields} | {"ENGRAM_EVALUATION_DATA"}
    assert set(re.findall(r"ENGRAM_[A-Z_]+", README)) <= known


def test_the_picture_is_well_formed_and_needs_nothing_from_elsewhere() -> None:
    picture = (ROOT / "docs" / "idea.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(picture)
    assert set(re.findall(r'https?://[^"\s]+', picture)) == {"http://www.w3.org/2000/svg"}
