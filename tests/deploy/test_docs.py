"""The documentation agrees with the program."""

import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest

from engram.cli import command
from engram.config.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
PARTS = ["Context", "Decision", "Figures", "Consequences"]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["settings", "routes"])
def test_pages_that_are_made_are_up_to_date(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))  # where a script finds what stands beside it
    page = runpy.run_path(str(ROOT / "docs" / f"{name}.py"))
    assert (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") == page["document"](), "run `make docs`"


def test_every_setting_is_described() -> None:
    for name, field in Settings.model_fields.items():
        assert field.description, name
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert page.count("\n- `") == len(Settings.model_fields)


def test_links_in_the_documentation_lead_somewhere() -> None:
    folders = [ROOT / name for name in ("clients", "docs", "evaluation", "evaluation_sets", "integrations")]
    nested = (page for folder in folders for page in folder.rglob("*.md") if "node_modules" not in page.parts)
    for page in (*ROOT.glob("*.md"), *nested):
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            assert target.startswith("http") or (page.parent / target).exists(), (page.name, target)


def test_the_readme_stays_a_page_that_is_read_in_minutes() -> None:
    assert len(README.split()) <= 900, "what is about one thing has a page of its own in docs/"


@pytest.mark.parametrize(
    "folder", ["clients/python", "integrations/haystack", "integrations/langchain", "integrations/llamaindex"]
)
def test_the_first_example_takes_an_ordinary_key(folder: str) -> None:
    example = (ROOT / folder / "README.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    assert "Engram" in example
    assert re.findall("judge=|on_behalf_of=", example) == [], "it takes the scope judge-as or act-as"


def test_every_page_is_in_the_contents() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    contents = set(re.findall(r"^[a-z-]+$", index, re.MULTILINE))
    assert contents == {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}


def test_decisions_are_numbered_and_have_the_same_parts() -> None:
    records = sorted((ROOT / "docs" / "decisions").glob("0*.md"))
    for number, record in enumerate(records, start=1):
        text = record.read_text(encoding="utf-8")
        assert record.name.startswith(f"{number:04d}-")
        assert text.startswith(f"# {number}. ")
        assert re.findall(r"^\*\*([A-Z]\w+)", text, re.MULTILINE) == PARTS, record.name
        assert len(text.splitlines()) <= 40, "a record is a page at most"


def test_every_command_is_mentioned() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    names = command().commands  # type: ignore[attr-defined]
    assert [name for name in names if f"engram {name}" not in page] == []


def test_the_picture_is_well_formed_and_needs_nothing_from_elsewhere() -> None:
    picture = (ROOT / "docs" / "idea.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(picture)
    assert set(re.findall(r'https?://[^"\s]+', picture)) == {"http://www.w3.org/2000/svg"}
