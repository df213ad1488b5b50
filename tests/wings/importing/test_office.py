"""Files that LibreOffice wrote, and files that hold other files, become passages with headings and pages."""

from email.message import EmailMessage
from pathlib import Path

import pytest

from engram.wings.importing.conversion.documents import Conversion, UnreadableError
from engram.wings.importing.conversion.formats import convert

FILES = Path(__file__).parent / "files"


def read(name: str) -> Conversion:
    return convert(name, (FILES / name).read_bytes())


def places(made: Conversion) -> list[tuple[object, object, str]]:
    return [(one.metadata.get("page"), one.metadata.get("heading"), one.text) for one in made.passages]


def test_a_word_document_keeps_its_headings_lists_and_tables() -> None:
    made = read("handbook.docx")
    assert {passage.title for passage in made.passages} == {"Staff handbook"}
    assert [passage.metadata["heading"] for passage in made.passages] == [
        ["Travel"],
        ["Travel", "Abroad"],
        ["Equipment", "Laptops"],
    ]
    assert made.passages[1].sentences[:2] == ("Abroad", "Trips to Zürich need the approval of a director.")
    assert made.passages[1].sentences[3:5] == ("Carry your passport.", "Carry the insurance card.")
    assert made.passages[2].text.endswith("Model | Price\nModel: Small | Price: 900\nModel: Large | Price: 1,400")


def test_a_pdf_says_on_which_page_and_below_which_bookmarks_a_passage_stands() -> None:
    shown = places(read("handbook.pdf"))
    assert [(page, heading) for page, heading, _ in shown] == [
        (1, ["Travel"]),
        (1, ["Travel", "Abroad"]),
        (2, ["Travel", "Abroad"]),
        (3, ["Equipment", "Laptops"]),
    ]
    assert shown[2][2] == "Abroad\nThe daily allowance abroad is 61 euros. It covers meals only."
    assert "Carry your passport.\nCarry the insurance card." in shown[1][2]


def test_a_slide_is_a_section_with_its_notes_and_its_number_as_the_page() -> None:
    assert places(read("deck.pptx")) == [
        (1, ["Roadmap"], "Roadmap\nThe harbour office opens in May.\nIt has thirty desks.\nMention the ferry."),
        (2, ["Costs"], "Costs\nItem | Euros\nFerry | 4,200"),
    ]


def test_a_row_of_a_sheet_is_a_passage() -> None:
    made = read("offices.xlsx").passages
    assert [passage.id for passage in made] == ["offices.xlsx#offices!2", "offices.xlsx#offices!3"]
    assert made[0].text == "name: Harbour office | city: Göteborg | opened: 2019-05-04 | staff: 31"
    assert made[1].metadata["sheet"] == "offices"


def test_a_message_with_html_only_and_attachments() -> None:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Ana <ana@example.org>", "ben@example.org", "Größe"
    message.set_content("<h2>Harbour</h2><p>The office opens in <b>May</b>.</p>", subtype="html")
    message.add_attachment(b"\x00\x01", maintype="application", subtype="zip", filename="plans.zip")
    made = convert("mail.eml", message.as_bytes())
    assert made.notes == ("mail.eml: attachments were not read: plans.zip",)
    assert [(one.title, one.text) for one in made.passages] == [
        ("Größe", "From: Ana <ana@example.org>; To: ben@example.org"),
        ("Größe", "Harbour\nThe office opens in May."),
    ]


def test_a_forwarded_message_is_a_section_below_its_subject() -> None:
    inner, outer = EmailMessage(), EmailMessage()
    inner["Subject"], inner["From"] = "Ferry", "cy@example.org"
    inner.set_content("The ferry leaves at nine.")
    outer["Subject"], outer["From"] = "Fwd", "ana@example.org"
    outer.set_content("See below.")
    outer.add_attachment(inner)
    made = convert("mail.eml", outer.as_bytes()).passages
    assert made[1].metadata["heading"] == ["Ferry"]
    assert made[1].sentences == ("Ferry", "The ferry leaves at nine.")


def test_json_lists_are_records_and_other_json_is_a_document() -> None:
    listed = convert("a.json", b'[{"id": 7, "text": "One.", "by": {"name": "Ana"}}, {"id": 8, "text": "Two."}]')
    assert [one.id for one in listed.passages] == ["a.json#7", "a.json#8"]
    assert listed.passages[0].metadata["by.name"] == "Ana"
    lines = convert("a.jsonl", b'{"id": 7, "text": "One."}\n\n{"id": 8, "text": "Two."}\n')
    assert [one.text for one in lines.passages] == ["One.\nid: 7", "Two.\nid: 8"]
    nested = convert("a.json", b'{"title": "T", "parts": [{"title": "Abroad", "text": "Ask first.", "days": 3}]}')
    assert [(one.title, one.metadata["heading"], one.text) for one in nested.passages] == [
        ("T", ["parts", "Abroad"], "Abroad\nAsk first.\ndays: 3")
    ]


def test_the_name_of_a_nested_object_is_kept_below_its_key() -> None:
    (passage,) = convert("a.json", b'{"title": "T", "author": {"name": "Ann", "age": 3}}').passages
    assert (passage.title, passage.metadata["heading"]) == ("T", ["author"])
    assert passage.text == "author\nname: Ann\nage: 3"


@pytest.mark.parametrize(
    ("name", "data", "sentences"),
    [
        ("a.txt", b"Travel abroad\nAsk your manager first.", ("Travel abroad", "Ask your manager first.")),
        ("a.txt", b"The river is long and\nwide. It ends\nin the sea.", None),
        ("a.md", b"**Abroad**\nAsk your manager first, always.", ("Abroad", "Ask your manager first, always.")),
        ("a.html", b"<div>Abroad<p>Ask first.</p></div>", ("Abroad", "Ask first.")),
        ("a.md", b"# Only a heading\n", ("Only a heading",)),
    ],
)
def test_a_heading_is_no_part_of_a_sentence(name: str, data: bytes, sentences: tuple[str, ...] | None) -> None:
    (made,) = convert(name, data).passages
    assert made.sentences == (sentences or ("The river is long and wide.", "It ends in the sea."))


def test_several_headings_of_the_first_level_are_chapters_and_no_title() -> None:
    made = convert("book.md", b"# One\n\nFirst.\n\n# Two\n\nSecond.\n").passages
    assert [(one.title, one.metadata["heading"]) for one in made] == [("book", ["One"]), ("book", ["Two"])]


def test_a_locked_pdf_needs_a_password() -> None:
    with pytest.raises(UnreadableError, match="password"):
        read("locked.pdf")
