"""EPUB: chapters in the order of reading."""

import io
import zipfile

import pytest

from engram.wings.importing.conversion.documents import UnreadableError
from engram.wings.importing.conversion.formats import convert

CONTAINER = """<?xml version="1.0"?>
<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container" version="1.0"><rootfiles>
<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"""
PACKAGE = """<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Valves and Pumps</dc:title></metadata><manifest>
<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="two" href="text/two%20b.xhtml" media-type="application/xhtml+xml"/>
<item id="one" href="text/one.xhtml" media-type="application/xhtml+xml"/>
<item id="gone" href="text/gone.xhtml" media-type="application/xhtml+xml"/>
</manifest><spine><itemref idref="one"/><itemref idref="two"/><itemref idref="gone"/></spine></package>"""
CHAPTER = """<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head>
<title/><script src="a.js"/></head><body>{}</body></html>"""
ONE = CHAPTER.format(
    '<h1>Valves</h1><p><a id="p1"/>'
    "Close&nbsp;the valve at 90&#160;degrees.</p><main><p>Wait.</p></main><p>Caf\xe9.</p>"
)
TWO = CHAPTER.format(
    "<h1>Pumps</h1><table><tr><th>Pump</th><th>Watts</th></tr><tr><td>P1</td><td>48213</td></tr></table>"
)
PARTS = {
    "mimetype": "application/epub+zip",
    "META-INF/container.xml": CONTAINER,
    "OEBPS/book.opf": PACKAGE,
    "OEBPS/nav.xhtml": CHAPTER.format("<nav><ol><li>Contents</li></ol></nav>"),
    "OEBPS/text/one.xhtml": ONE,
    "OEBPS/text/two b.xhtml": TWO,
    "OEBPS/cover.png": "png",
}


def book(**parts: str | None) -> bytes:
    """A book; ``parts``: name with ``__`` for a slash -> another content, None: left out."""
    changed = PARTS | {name.replace("__", "/"): content for name, content in parts.items()}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in changed.items():
            if content is not None:
                archive.writestr(name, content)
    return file.getvalue()


def test_chapters_come_in_the_order_of_reading() -> None:
    made = convert("a.epub", book())
    assert [one.title for one in made.passages] == ["Valves and Pumps"] * 2
    assert [one.metadata["heading"] for one in made.passages] == [["Valves"], ["Pumps"]]
    assert made.passages[0].sentences == ("Valves", "Close the valve at 90 degrees.", "Wait.", "Caf\xe9.")
    assert "Pump: P1 | Watts: 48213" in made.passages[1].text
    assert made.notes == (
        "a.epub: chapters that are not in the file: OEBPS/text/gone.xhtml",
        "a.epub: not read: pictures (1)",
    )
    assert made.differences == ()


def test_a_chapter_that_is_no_xml_is_read_as_browsers_read_it() -> None:
    made = convert("a.epub", book(**{"OEBPS__text__one.xhtml": "<html><body><p>Open it<p>Close it</body></html>"}))
    assert made.passages[0].sentences[:2] == ("Open it", "Close it")


def test_a_protected_book_is_refused_and_one_with_protected_fonts_is_read() -> None:
    def encryption(part: str) -> str:
        return f'<encryption xmlns="a"><EncryptedData><CipherReference URI="{part}"/></EncryptedData></encryption>'

    with pytest.raises(UnreadableError, match="protected against copying: OEBPS"):
        convert("a.epub", book(**{"META-INF__encryption.xml": encryption("OEBPS/text/one.xhtml")}))
    assert convert("a.epub", book(**{"META-INF__encryption.xml": encryption("OEBPS/font.otf")})).passages


@pytest.mark.parametrize("missing", ["META-INF__container.xml", "OEBPS__book.opf"])
def test_what_is_no_book_is_one_line(missing: str) -> None:
    with pytest.raises(UnreadableError, match=r"it is no EPUB|names no package"):
        convert("a.epub", book(**{missing: None}))
