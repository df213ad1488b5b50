"""Reader of PDF."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from engram.core.text.joining import is_unspaced
from engram.providers.language.sentence_splitter import split_sentences
from engram.wings.importing.conversion.documents import Document, UnreadableError
from engram.wings.importing.conversion.form_fields import read_fields
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.line_ends import join_words
from engram.wings.importing.conversion.notes import list_some
from engram.wings.importing.conversion.outline import Outline, flatten_text, library
from engram.wings.importing.conversion.page_layout import ROW, read_lines, read_row
from engram.wings.importing.conversion.prose import FULL_SHARE, STOPS, add_paragraphs
from engram.wings.importing.conversion.running_heads import drop_running_heads
from engram.wings.importing.conversion.scans import find_program, note_recognised, recognise_pages

_NUMBERING = re.compile(r"^(?:\d+(?:\.\d+)*\.?|[A-Z]\.|[IVX]+\.)\s+")
_HEADING_LINES = 3
Bookmark = tuple[int, str]


def pdf(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """The text of the pages below the headings of the bookmarks, without page numbers and lines that pages repeat.

    Filled fields of forms stand below the text of their page. The text of a page without any is recognised, where
    Tesseract is installed, as long as the time for OCR lasts.

    Raises:
        UnreadableError: it is damaged, needs a password, has too many pages, or has no text.
    """
    pdfium, program = library("pypdfium2"), find_program()
    try:
        reader = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if error.err_code == library("pypdfium2.raw").FPDF_ERR_PASSWORD:
            raise UnreadableError(f"{source} needs a password.") from error
        raise UnreadableError(f"{source} is no PDF that can be read ({error}).") from error
    try:
        if len(reader) > limits.pages:
            raise UnreadableError(f"{source} has more than {limits.pages:,} pages.")
        if reader.get_formtype() != library("pypdfium2.raw").FORMTYPE_NONE:
            reader.init_forms()
        read, fields, plain = [], [], []
        for number in range(len(reader)):
            text, filled, seen = _read_page(reader, number)
            read.append(text)
            fields.append(filled)
            plain.append(seen)
        empty = [number for number, text in enumerate(read, 1) if not text and not fields[number - 1]]
        recognised = {} if program is None else recognise_pages(source, reader, empty, limits)
        for number, found in recognised.items():
            read[number - 1] = plain[number - 1] = found.text
        outline = Outline(reader.get_metadata_value("Title"))
        bookmarks = _bookmarks(reader)
    finally:
        reader.close()
    unread = [] if program is None else [number for number in empty if number not in recognised]
    blank = [number for number in empty if not read[number - 1] and (program is None or number in recognised)]
    pages, notes = drop_running_heads(source, read)
    for number, page in enumerate(_join_pages(join_words(pages)), 1):
        outline.page = number
        _add_page(page, bookmarks[number], outline)
        for field in fields[number - 1]:
            outline.add(field, whole=True)
    if not outline.blocks and program is None:
        raise UnreadableError(
            f"{source} has no text. If it is a scan, Tesseract reads it: apt install tesseract-ocr."
        )
    if not outline.blocks and unread:
        raise UnreadableError(f"{source} has no text: OCR failed or took too long.")
    named = {"no text on": blank, "OCR failed or took too long for": unread}
    notes += tuple(f"{source}: {what} page {list_some(numbers)}" for what, numbers in named.items() if numbers)
    document = outline.document(source, "pdf", (*notes, *note_recognised(source, recognised)))
    filled_in = [f"{page}\r\n" + "\r\n".join(filled) for page, filled in zip(plain, fields, strict=True)]
    return replace(document, plain_pages=tuple(filled_in))


def _read_page(reader: Any, number: int) -> tuple[str, list[str], str]:
    """The text of a page, its filled fields, and its plain text as pdfium gives it."""
    page = reader[number]
    try:
        lines, plain = read_lines(page)
        return "\n".join(lines).strip(), read_fields(page), plain
    finally:
        page.close()


def _bookmarks(reader: Any) -> dict[int, list[Bookmark]]:
    """(level, heading) of each page, from 1. A damaged outline is no reason to refuse the text."""
    bookmarks_by_page: dict[int, list[Bookmark]] = defaultdict(list)
    try:
        for entry in reader.get_toc():
            title, target = flatten_text(entry.get_title()), entry.get_dest()
            page = None if target is None else target.get_index()
            if title and page is not None:
                bookmarks_by_page[page + 1].append((min(entry.level + 1, 9), title))
    except Exception:  # noqa: BLE001 - pdfium raises what the file makes it stumble over
        return defaultdict(list)
    return bookmarks_by_page


def _add_page(page: str, bookmarks: Sequence[Bookmark], outline: Outline) -> None:
    """Add a page; a line that is the next bookmark's title is that heading."""
    lines = page.split("\n")
    waiting = list(bookmarks)
    section_lines: list[str] = []
    at = 0
    while at < len(lines):
        length = _count_heading_lines(lines[at:], waiting[0][1]) if waiting else 0
        if length:
            _add_text("\n".join(section_lines), outline)
            section_lines = []
            outline.open_heading(*waiting.pop(0))
            at += length
        else:
            section_lines.append(lines[at])
            at += 1
    _add_text("\n".join(section_lines), outline)


def _count_heading_lines(lines: Sequence[str], title: str) -> int:
    """Count the leading lines that repeat the title, numbering aside; 0 if none does."""
    for length in range(1, min(_HEADING_LINES, len(lines)) + 1):
        if _normalise_title(" ".join(lines[:length])) == _normalise_title(title):
            return length
    return 0


def _normalise_title(title: str) -> str:
    return re.sub(r"\W+", "", _NUMBERING.sub("", flatten_text(title))).casefold()


def _add_text(text: str, outline: Outline) -> None:
    for row, run in groupby(text.split("\n"), key=read_row):
        if row is None:
            add_paragraphs("\n".join(run), outline)
        else:
            outline.table(row for _ in run)  # a table may have equal rows


def _join_pages(pages: list[str]) -> list[str]:
    """Move the end of a sentence that runs over a page's end to the page where the sentence begins."""
    for at in range(1, len(pages)):
        before, page = pages[at - 1], pages[at]
        if _runs_over(before, page):
            first_sentence = split_sentences(page.partition(ROW)[0])[0]
            pages[at - 1] = f"{before}\n{first_sentence}"
            pages[at] = page[len(first_sentence) :].lstrip()
    return pages


def _runs_over(before: str, page: str) -> bool:
    """Whether a sentence runs over a page's end; in Chinese and Japanese the last line of the page is full then."""
    if not before or not page or before.endswith((*STOPS, ";", "；")):
        return False
    *_, last = lines = before.split("\n")
    return page[0].islower() or (is_unspaced(page[0]) and len(last) >= FULL_SHARE * max(map(len, lines)))
