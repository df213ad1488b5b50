"""Plain text of messages: what is new, and what it quotes from earlier ones."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from engram.wings.importing.conversion.outline import QUOTATION, Outline, flatten_text
from engram.wings.importing.conversion.prose import paragraphs

_MARK = re.compile(r">[ ]?")
_SIGN = re.compile(r">(?:=|[ ]?\d)")
_MARKED_WORD = re.compile(r">+[^\W\d]")
_SEPARATOR = re.compile(r"\s*(?:-{3,}[ ]?([^-\n]{3,60}?)[ ]?-{3,}|_{10,})\s*")
_HEADER_LINE = re.compile(r"\*?[^\W\d_][^:\n@]{0,30}:\*?[ \t]+\S.*")
_HEADER_LINES = 3
_LOOK_LINES = 6
_BLANK_LINE = re.compile(r"\n\s*\n")
MOST = 20
"""Quotations inside each other that are told apart."""


@dataclass(frozen=True)
class _Line:
    text: str
    depth: int


def add_plain(text: str, outline: Outline) -> None:
    """Add the text of a message. What a line quotes (``> ``) and what follows the header of an earlier message is
    a quotation, below the line that introduces it.
    """
    lines = list(_read_marks(text.split("\n")))
    texts = ["" if line.depth else line.text for line in lines]
    begin = next((at for at in range(len(texts)) if begins_original(texts[at : at + _LOOK_LINES])), len(lines))
    _add_lines(lines[:begin], outline)
    if begin == len(lines):
        return
    rest = lines[begin + (_SEPARATOR.fullmatch(lines[begin].text) is not None) :]
    outline.open_quotation(title_original(lines[begin].text))
    while rest and not rest[0].text.strip():
        rest.pop(0)
    header = 0
    while header < len(rest) and _HEADER_LINE.fullmatch(rest[header].text):
        header += 1
    outline.add("; ".join(line.text.strip() for line in rest[:header]), whole=True)
    add_plain("\n".join("> " * line.depth + line.text for line in rest[header:]), outline)
    outline.close_quotation()


def _add_lines(lines: Sequence[_Line], outline: Outline) -> None:
    depth, run = 0, list[str]()

    def end_run() -> None:
        for part in _BLANK_LINE.split("\n".join(run)):
            for piece, heading in paragraphs(part):
                outline.add(flatten_text(piece), whole=heading)
        run.clear()

    for line in [*lines, _Line("", 0)]:
        if line.depth != depth and (line.text.strip() or line.depth):
            end_run()
            for _ in range(depth, line.depth):
                outline.open_quotation()
            for _ in range(line.depth, depth):
                outline.close_quotation()
            depth = line.depth
        run.append(line.text)
    end_run()
    for _ in range(depth):
        outline.close_quotation()


def _read_marks(lines: Sequence[str]) -> Iterator[_Line]:
    """Count and remove the quotation marks of each line.

    ``>5 bar`` is "more than 5 bar", also inside a quotation, unless the message's marks stand right before words.
    """
    tight = any(_MARKED_WORD.match(line) for line in lines)
    for line in lines:
        rest, depth = line, 0
        while (mark := _MARK.match(rest)) and depth < MOST:
            if _SIGN.match(rest) and not tight and not rest.startswith("> "):
                break
            rest, depth = rest[mark.end() :], depth + 1
        yield _Line(rest, depth)


def begins_original(lines: Sequence[str]) -> bool:
    """Whether an earlier message begins with these lines: dashes around words, or header lines with an address."""
    if not lines:
        return False
    if separator := _SEPARATOR.fullmatch(lines[0]):
        following = [line for line in lines[1:] if line.strip()]
        return bool(separator[1]) or any(_HEADER_LINE.fullmatch(line) for line in following[:1])
    count = next((n for n, line in enumerate(lines) if not _HEADER_LINE.fullmatch(line)), len(lines))
    return count >= _HEADER_LINES and "@" in "".join(lines[:count])


def title_original(line: str) -> str:
    """What the line of dashes calls the earlier message."""
    separator = _SEPARATOR.fullmatch(line)
    return (separator and separator[1]) or QUOTATION
