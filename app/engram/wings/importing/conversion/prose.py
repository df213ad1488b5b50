"""Readers of plain text and Markdown."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from engram.wings.importing.conversion.documents import Document
from engram.wings.importing.conversion.encodings import decode_text, note
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.outline import Outline, flatten_text, library
from engram.wings.importing.conversion.pages import add_html

_BLANK_LINE = re.compile(r"\n\s*\n")
_FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)\n---\s*\n", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:\s*[\"']?(.+?)[\"']?\s*$", re.MULTILINE)
_ENDS = tuple(".!?:;,…-–—\"'”’»)")
_BULLET = re.compile(r"[•▪◦‣●○■]\s*(?=\S)")
_HEADING_SHARE = 0.6
_HEADING_WORDS = 12


def text(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """Plain text: blank lines separate paragraphs, and a line that looks like a heading is a unit of its own."""
    whole, encoding = decode_text(source, data)
    outline = Outline()
    for part in _BLANK_LINE.split(whole):
        for piece, heading in paragraphs(part):
            outline.add(flatten_text(piece), whole=heading)
    return outline.document(source, "text", note(source, encoding))


def paragraphs(part: str) -> Iterator[tuple[str, bool]]:
    """Split text without blank lines into paragraphs: (text, whether it looks like a heading).

    A line looks like a heading if it is short beside the longest line, does not end as a sentence or a clause
    does, and the next line begins with a capital or a digit. Without this, "Travel abroad" and the line "Ask your
    manager first." below it are one sentence. A line that begins with a bullet begins a paragraph, without it.
    """
    lines = [line.strip() for line in part.splitlines() if line.strip()]
    widest = max(map(len, lines), default=0)
    paragraph: list[str] = []
    for at, line in enumerate(lines):
        if bullet := _BULLET.match(line):
            if paragraph:
                yield "\n".join(paragraph), False
            paragraph = [line[bullet.end() :]]
            continue
        following = lines[at + 1] if at + 1 < len(lines) else ""
        begins = not paragraph or paragraph[-1].endswith((".", "!", "?", ":", "…"))
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
    if not following or line.endswith(_ENDS) or len(line.split()) > _HEADING_WORDS or not line[0].isupper():
        return bool(following) and line[0].isdigit() and _is_numbered(line, following)
    short = len(line) < _HEADING_SHARE * widest or len(following) > 2 * len(line)
    return short and (following[0].isupper() or following[0].isdigit())


def _is_numbered(line: str, following: str) -> bool:
    """Whether the line is like "2.1 Travel abroad"."""
    number = re.match(r"\d+(?:\.\d+)*\.?\s+[A-ZÀ-Þ]", line)
    return bool(number) and not line.endswith(_ENDS) and len(line.split()) <= _HEADING_WORDS and len(following) > 0


def markdown(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """CommonMark with tables; front matter gives the title, else the only heading of level 1."""
    whole, encoding = decode_text(source, data)
    front = _FRONT_MATTER.match(whole)
    title = _FRONT_TITLE.search(front[1]) if front else None
    parser = library("markdown_it").MarkdownIt("commonmark").enable("table")
    outline = Outline(title[1] if title else None)
    tokens = parser.parse(whole[front.end() :] if front else whole)
    row: list[str] = []
    for before, token in pairwise([*tokens[:1], *tokens]):
        if token.type in ("fence", "code_block"):
            outline.lines(token.content)
        elif token.type == "tr_close":
            outline.row(row)
            row = []
        elif token.type == "html_block":
            add_html(source, token.content, outline)
        elif token.type == "inline" and (words := _inline(token.children or [])).strip():
            if before.type == "heading_open":
                outline.open_heading(int(before.tag[1]), words)
            elif before.type in ("td_open", "th_open"):
                row.append(flatten_text(words))
            else:
                for piece, heading in paragraphs(words):
                    outline.add(flatten_text(piece), whole=heading)
    return outline.document(source, "markdown", note(source, encoding))


def _inline(tokens: Sequence[Any]) -> str:
    """The words of a line of Markdown, without its marks."""
    return "".join(
        "\n" if token.type in ("softbreak", "hardbreak") else _inline(token.children or []) or token.content
        for token in tokens
        if token.type != "html_inline"
    )
