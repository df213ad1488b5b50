"""Office files for tests, made by the libraries that read them, or of XML where these cannot write something."""

import io
import zipfile
from collections.abc import Callable
from typing import Any

import openpyxl
import pptx
from pptx.util import Inches

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_MAIN = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
_DOCUMENT = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"

LOCK_FILE = b"\x03Ana".ljust(55) + b"\x03\x00A\x00n\x00a\x00".ljust(107)
"""What Office writes into ``~$NAME`` while NAME is open: who opened it."""


def word_file(body: str, **parts: bytes) -> bytes:
    """A Word document with this XML as its body; ``parts`` are further members of ``word/``."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{_TYPES}"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{_MAIN}"/></Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="r1" Type="{_DOCUMENT}" '
            'Target="word/document.xml"/></Relationships>',
        )
        document = f'<w:document xmlns:w="{WORD}" xmlns:m="{MATH}"><w:body>{body}</w:body></w:document>'
        archive.writestr("word/document.xml", document)
        for name, data in parts.items():
            archive.writestr(f"word/{name.replace('__', '/')}.xml", data)
    return file.getvalue()


def paragraph(content: str) -> str:
    """A paragraph of runs, or of a text without markup."""
    return f"<w:p>{content if content.startswith('<') or not content else run(content)}</w:p>"


def run(text: str, properties: str = "") -> str:
    """A run of text."""
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def word_table(rows: list[list[tuple[str, str]]]) -> str:
    """A table of (text, properties) of cells."""
    cells = (
        "".join(f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>" for text, properties in row)
        for row in rows
    )
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


def workbook(fill: Callable[[Any], None]) -> bytes:
    """A workbook whose first sheet is filled by a function."""
    book, file = openpyxl.Workbook(), io.BytesIO()
    fill(book.active)
    book.save(file)
    return file.getvalue()


def deck(fill: Callable[[Any], None]) -> bytes:
    """A presentation filled by a function, which takes it and adds slides."""
    made, file = pptx.Presentation(), io.BytesIO()
    fill(made)
    made.save(file)
    return file.getvalue()


def add_slide_table(slide: Any, rows: list[list[str]]) -> Any:
    """Add a table to a slide; returns it."""
    place = (Inches(1), Inches(2), Inches(6), Inches(2))
    table = slide.shapes.add_table(len(rows), len(rows[0]), *place).table
    for at, row in enumerate(rows):
        for column, text in enumerate(row):
            table.cell(at, column).text = text
    return table
