"""Reader of PDF."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any

from engram.providers.language.sentence_splitter import split_sentences
from engram.wings.importing.conversion.documents import Document, UnreadableError
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.outline import Outline, flatten_text, library
from engram.wings.importing.conversion.prose import paragraphs

_BLANK_LINE = re.compile(r"\n\s*\n")
# A word cut at the end of a line of print; capitals after the hyphen are a name that has one.
_HYPHENATED = re.compile(r"(\w)-\n(?=[a-zà-ÿ])")
_NUMBERING = re.compile(r"^(?:\d+(?:\.\d+)*\.?|[A-Z]\.|[IVX]+\.)\s+")
_HEADING_LINES = 3
Bookmark = tuple[int, str]


def pdf(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """The text of the pages below the headings of the bookmarks, without lines that most pages begin or end with.

    Raises:
        UnreadableError: it is damaged, needs a password, has too many pages, or has no text (a scan).
    """
    pypdf = library("pypdf")
    try:
        reader = pypdf.PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableError(f"{source} needs a password.")
        if len(reader.pages) > limits.pages:
            raise UnreadableError(f"{source} has more than {limits.pages:,} pages.")
        pages = [page.extract_text().strip() for page in reader.pages]
        title = reader.metadata.title if reader.metadata else None
        bookmarks = _bookmarks(reader)
    except (pypdf.errors.PyPdfError, ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"{source} is no PDF that can be read ({error}).") from error
    outline = Outline(title if isinstance(title, str) else None)
    for number, page in enumerate(_join_pages(list(_drop_running_heads(pages))), 1):
        outline.page = number
        _add_page(page, bookmarks[number], outline)
    return outline.document(source, "pdf")


def _bookmarks(reader: Any) -> dict[int, list[Bookmark]]:
    """(level, heading) of each page, from 1. A damaged outline is no reason to refuse the text."""
    bookmarks_by_page: dict[int, list[Bookmark]] = defaultdict(list)
    try:
        waiting = [(1, entry) for entry in reversed(reader.outline)]
        while waiting:
            level, entry = waiting.pop()
            if isinstance(entry, list):
                waiting += [(level + 1, below) for below in reversed(entry)]
            elif (page := reader.get_destination_page_number(entry)) is not None and flatten_text(str(entry.title)):
                bookmarks_by_page[page + 1].append((min(level, 9), flatten_text(str(entry.title))))
    except Exception:  # noqa: BLE001 - pypdf raises what the file makes it stumble over
        return defaultdict(list)
    return bookmarks_by_page


def _add_page(page: str, bookmarks: Sequence[Bookmark], outline: Outline) -> None:
    """Add a page; a line that is the next bookmark's title is that heading."""
    lines = page.splitlines()
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
    for part in _BLANK_LINE.split(text):
        for piece, heading in paragraphs(_HYPHENATED.sub(r"\1", part)):
            outline.add(flatten_text(piece), whole=heading)


def _join_pages(pages: list[str]) -> list[str]:
    """Move the end of a sentence that runs over a page's end to the page where the sentence begins."""
    for at in range(1, len(pages)):
        before, page = pages[at - 1], pages[at]
        if before and page[:1].islower() and not before.endswith((".", "!", "?", ":", ";")):
            first_sentence = split_sentences(page)[0]
            pages[at - 1] = f"{before}\n{first_sentence}"
            pages[at] = page[len(first_sentence) :].lstrip()
    return pages


def _drop_running_heads(pages: Sequence[str]) -> Iterator[str]:
    """Pages without the first and last lines that more than half of them share, numbers aside."""
    lines = [page.splitlines() for page in pages]
    ends: Counter[str] = Counter()
    for page in lines:
        ends.update({_drop_numbers(page[0]), _drop_numbers(page[-1])} if page else ())
    running = {line for line, count in ends.items() if count > max(2, len(pages) / 2)}
    for page in lines:
        while page and _drop_numbers(page[0]) in running:
            del page[0]
        while page and _drop_numbers(page[-1]) in running:
            del page[-1]
        yield "\n".join(page)


def _drop_numbers(line: str) -> str:
    return re.sub(r"\d+", "", line).strip()
