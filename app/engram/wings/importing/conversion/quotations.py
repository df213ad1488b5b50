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
    begin = next((at for at in range(len(lines)) if _begins_original(lines, at)), len(lines))
    _add_lines(lines[:begin], outline)
    if begin == len(lines):
        return
    separator = _SEPARATOR.fullmatch(lines[begin].text)
    rest = lines[begin + (separator is not None) :]
    outline.open_quotation((separator and separator[1]) or QUOTATION)
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


def _begins_original(lines: Sequence[_Line], at: int) -> bool:
    """Whether an earlier message begins here: dashes around words, or several header lines with an address."""
    line = lines[at]
    if line.depth:
        return False
    if separator := _SEPARATOR.fullmatch(line.text):
        following = [after.text for after in lines[at + 1 : at + 4] if after.text.strip()]
        return bool(separator[1]) or any(_HEADER_LINE.fullmatch(text) for text in following[:1])
    block = [after.text for after in lines[at : at + 2 * _HEADER_LINES]]
    count = next((n for n, text in enumerate(block) if not _HEADER_LINE.fullmatch(text)), len(block))
    return count >= _HEADER_LINES and "@" in "".join(block[:count])
