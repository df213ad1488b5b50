"""Reader of plain text."""

import re
from collections.abc import Iterator

from engram.core.text.joining import is_unspaced
from engram.wings.importing.conversion.documents import Document
from engram.wings.importing.conversion.encodings import decode_text
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.line_ends import join_words
from engram.wings.importing.conversion.outline import Outline, flatten_text

_BLANK_LINE = re.compile(r"\n\s*\n|\f")
STOPS = tuple(".!?:…。！？：।॥۔؟")
"""What ends a sentence."""
_ENDS = (*STOPS, *";,-–—\"'”’»)；，、」』）》،؛")
_BULLET = re.compile(r"(?:[•▪◦‣●○■]\s*|[-*–]\s+)(?=\S)")
FULL_SHARE = 0.8
"""Share of the widest line from which on a line is full."""
_HEADING_WORDS = 12
_RULE = re.compile(r"([-=_*~–—])\1+")


def text(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """Plain text: blank lines separate paragraphs, and a line that looks like a heading is a unit of its own."""
    whole, _, notes = decode_text(source, data)
    outline = Outline()
    for part in join_words([whole]):
        add_paragraphs(part, outline)
    return outline.document(source, "text", notes)


def add_paragraphs(text: str, outline: Outline) -> None:
    """Add a text whose blank lines separate paragraphs, see ``paragraphs``."""
    for part in _BLANK_LINE.split(text):
        for piece, heading in paragraphs(part):
            outline.add(flatten_text(piece), whole=heading)


def paragraphs(part: str) -> Iterator[tuple[str, bool]]:
    """Split text without blank lines into paragraphs: (text, whether it looks like a heading).

    A line looks like a heading if the next word had room in it, it does not end as a sentence or a clause does, and
    the next line begins with a capital, a digit, or a letter of a script without capitals. Without this, "Travel
    abroad" and the line "Ask your manager first." below it are one sentence. A line that begins with a bullet
    begins a paragraph, without it. A drawn line only separates.
    """
    lines = [line.strip() for line in part.split("\n") if line.strip()]
    widest = max(map(len, lines), default=0)
    paragraph: list[str] = []
    for at, line in enumerate(lines):
        if paragraph and _RULE.fullmatch(line):
            yield "\n".join(paragraph), False
            paragraph = []
        if _RULE.fullmatch(line):
            continue
        if bullet := _BULLET.match(line):
            if paragraph:
                yield "\n".join(paragraph), False
            paragraph = [line[bullet.end() :]]
            continue
        following = lines[at + 1] if at + 1 < len(lines) else ""
        begins = not paragraph or paragraph[-1].endswith(STOPS)
        if begins and _is_heading(line, following, widest):
            if paragraph:
                yield "\n".join(paragraph), False
                paragraph = []
            yield line, True
        else:
            paragraph.append(line)
    if paragraph:
        yield "\n".join(paragraph), False


def _is_heading(line: str, following: str, widest: int) -> bool:
    if not following or line.endswith(_ENDS) or len(line.split()) > _HEADING_WORDS or not _is_capital(line[0]):
        return bool(following) and line[0].isdigit() and _is_numbered(line, following)
    next_word = following[0] if is_unspaced(following[0]) else following.split(maxsplit=1)[0]
    fits = len(line) + 1 + len(next_word) < FULL_SHARE * widest  # the line ends before it is full
    return (fits or len(following) > 2 * len(line)) and (_is_capital(following[0]) or following[0].isdigit())


def _is_capital(letter: str) -> bool:
    """Whether it is a capital, or a letter of a script that has none."""
    return letter.isalpha() and not letter.islower()


def _is_numbered(line: str, following: str) -> bool:
    """Whether the line is like "2.1 Travel abroad"."""
    number = re.match(r"\d+(?:\.\d+)*\.?\s+[A-ZÀ-Þ]", line)
    return bool(number) and not line.endswith(_ENDS) and len(line.split()) <= _HEADING_WORDS and len(following) > 0
