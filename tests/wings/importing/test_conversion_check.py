"""A conversion is held against what a simple second reader sees in the file."""

import io
import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from engram.wings.importing.conversion import formats, pages, portable, word
from engram.wings.importing.conversion.conversion_check import find_differences
from engram.wings.importing.conversion.documents import Block, Document
from engram.wings.importing.conversion.formats import convert
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.simple_readers import PlainText, read_plainly
from tests.support.pdf_files import pdf_drawn, pdf_of, show_at
from tests.wings.importing.office_files import run, word_file, workbook

FILES = Path(__file__).parent / "files"
FIGURES = ["North 1250 1310", "South 48213 51008", "East 2023 2024"]
REPORT = " ".join(FIGURES)


def compare(file: str, *blocks: str) -> tuple[str, ...]:
    return find_differences("a.pdf", PlainText(file, file), [Block(text) for text in blocks], [])


@pytest.mark.parametrize(
    "blocks",
    [
        FIGURES,
        FIGURES[::-1],
        ["North | 1250 | 1310", *FIGURES[1:]],
        [REPORT.replace("1250", "12^50")],
        [f"{REPORT} [1]"],
        [f"{REPORT} {'m^3 ' * 9}"],
    ],
)
def test_no_alarm_where_all_is_there(blocks: list[str]) -> None:
    assert compare(REPORT, *blocks) == ()


@pytest.mark.parametrize(
    ("blocks", "sample"),
    [
        (
            ["North 1^250 1^310", "South 4^8213 5^1008", "East 2^023 2^024"],
            "6 figures differ .*: 1250, 1310, 48213",
        ),
        (FIGURES[:2], "2 figures differ .*: 2023, 2024"),
        ([*FIGURES, FIGURES[1]], "2 figures differ .*: 48213, 51008"),
        ([*FIGURES, "West 17 18"], "2 figures differ .*: 17, 18"),
        (["North 1250 1310South 48213 51008East 2023 2024"], "2 figures differ .*: 1310, 51008"),
    ],
)
def test_mangled_figures_are_named(blocks: list[str], sample: str) -> None:
    (note,) = compare(REPORT, *blocks)
    assert re.search(sample, note), note


def test_missing_words_are_named() -> None:
    text = "On Windows start the setup as administrator."
    assert compare(f"Choose your system. {text}", "Choose your system.") == (
        "a.pdf: 7 words of the plain text of the file are missing: on, windows, start, the, setup and 2 more",
    )


def test_names_of_columns_before_each_value_are_no_figures_of_the_row() -> None:
    rows = [
        Block("Region | 2023"),
        *(Block(f"Region: R | 2023: {n}00", header="Region | 2023") for n in range(1, 9)),
    ]
    text = "Region 2023 " + " ".join(f"R {n}00" for n in range(1, 9))
    assert find_differences("a.pdf", PlainText(text, text), rows, []) == ()


@pytest.mark.parametrize("name", ["handbook.pdf", "handbook.docx", "deck.pptx", "offices.xlsx"])
def test_no_alarm_for_whole_files(name: str) -> None:
    assert convert(name, (FILES / name).read_bytes()).differences == ()


def lose(read: Callable[..., Document], words: str) -> Callable[..., Document]:
    """A reader that loses a part of the text."""

    def mangle(source: str, data: bytes, limits: ConversionLimits) -> Document:
        document = read(source, data, limits)
        return replace(
            document, blocks=tuple(replace(one, text=one.text.replace(words, "")) for one in document.blocks)
        )

    return mangle


TEXT = "The pump costs 900 euros in 2024. Its valve opens at seven bar."
LOST = "costs 900 euros in 2024"


@pytest.mark.parametrize(
    ("name", "data", "read"),
    [
        ("a.pdf", pdf_of([[TEXT]]), portable.pdf),
        ("a.html", f"<title>T</title><p>{TEXT}</p>".encode(), pages.html),
        ("a.docx", word_file(f"<w:p>{run(TEXT)}</w:p>"), word.docx),
    ],
    ids=["pdf", "html", "docx"],
)
def test_what_a_reader_loses_is_a_note(
    name: str, data: bytes, read: Callable[..., Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert convert(name, data).differences == ()
    monkeypatch.setitem(formats.READERS, Path(name).suffix, lose(read, LOST))
    made = convert(name, data)
    assert made.differences == (f"{name}: 2 figures differ from the plain text of the file: 900, 2024",)
    assert set(made.differences) <= set(made.notes)


def test_what_pages_repeat_is_not_required() -> None:
    shown = [["The Journal of Rivers", f"River {name} is long.", f"{n}"] for n, name in enumerate("ABCDE", 1)]
    assert convert("a.pdf", pdf_of(shown)).differences == ()
    seen = read_plainly(
        "a.pdf", ".pdf", b"", ["Head\r\nInvoice 1043\r\n1", "Head\r\nInvoice 1077\r\n2", "Head\r\nx\r\n3"]
    )
    assert seen is not None
    assert seen.required.split() == ["Invoice", "1043", "Invoice", "1077", "x"]


def test_turned_and_raised_figures_of_a_page_raise_no_alarm() -> None:
    raised = show_at((72, 700, "Volume 10")) + " BT /F1 7 Tf 127 706 Td (6) Tj ET"
    assert convert("a.pdf", pdf_drawn([raised])).differences == ()


@pytest.mark.parametrize(
    "page",
    [
        '<?xml version="1.0" encoding="iso-8859-1"?><html xmlns="http://www.w3.org/1999/xhtml"><p>Is 5.</p></html>',
        "<!-- only -->Is 5.",
        "<p>Is 5.<frameset><frame></frameset>",
        "Is 5.",
    ],
    ids=["xhtml", "comment", "frames", "text"],
)
def test_pages_of_any_form_are_compared(page: str) -> None:
    assert convert("a.xhtml", page.encode()).notes == ()


def test_a_file_that_the_second_reader_cannot_read_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*_: object) -> None:
        raise KeyError("xl/workbook.xml")

    monkeypatch.setattr(formats, "read_plainly", stumble)
    made = convert("a.html", b"<p>Is 5.</p>")
    assert (
        made.differences == made.notes == ("a.html: could not be compared with its plain text ('xl/workbook.xml')",)
    )
    assert made.passages[0].text == "Is 5."


def test_how_a_cell_is_read_aloud_is_not_required() -> None:
    data = workbook(lambda sheet: sheet.append(["東京", "Price"]) or sheet.append(["大阪", 7]))
    strings = io.BytesIO(data)
    changed = io.BytesIO()
    with zipfile.ZipFile(strings) as before, zipfile.ZipFile(changed, "w") as after:
        for name in before.namelist():
            xml = before.read(name)
            if name == "xl/sharedStrings.xml":
                aloud = "<rPh sb='0' eb='2'><t>オオサカケンノマチトシ</t></rPh></si>".encode()
                xml = xml.replace("大阪</t></si>".encode(), "大阪</t>".encode() + aloud)
                assert b"rPh" in xml
            after.writestr(name, xml)
    assert convert("a.xlsx", changed.getvalue()).differences == ()
