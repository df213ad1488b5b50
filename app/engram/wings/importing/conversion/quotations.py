"""Plain text of messages: what is new, and what it quotes from earlier ones."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile

from engram.wings.importing.conversion.line_ends import join_words
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
QUOTATION_DEPTH = 20
"""Quotations inside each other that are told apart."""


@dataclass(frozen=True)
class _MessageLine:
    text: str
    depth: int


def add_plain(text: str, outline: Outline) -> None:
    """Add the text of a message. What a line quotes (``> ``) and what follows the header of an earlier message is
    a quotation, below the line that introduces it.
    """
    lines = list(_read_marks(text.split("\n")))
    texts = ["" if line.depth else line.text for line in lines]
    at = opened = 0
    while at < len(lines):
        begin = next((n for n in range(at, len(lines)) if begins_original(texts[n : n + _LOOK_LINES])), len(lines))
        _add_lines(lines[at:begin], outline)
        if begin == len(lines):
            break
        if opened == QUOTATION_DEPTH:  # still older messages stand beside each other
            outline.close_quotation()
            opened -= 1
        outline.open_quotation(title_original(lines[begin].text))
        opened += 1
        at = _add_header(lines, begin + (_SEPARATOR.fullmatch(lines[begin].text) is not None), outline)
    for _ in range(opened):
        outline.close_quotation()


def _add_header(lines: Sequence[_MessageLine], at: int, outline: Outline) -> int:
    """Add the header of an earlier message as one line; returns where its text begins."""
    while at < len(lines) and not lines[at].text.strip():
        at += 1
    header = read_header(line.text for line in islice(lines, at, None))
    outline.add("; ".join(header), whole=True, is_header=True)
    return at + len(header)


def read_header(lines: Iterable[str]) -> list[str]:
    """Return the first lines, as far as they are those of a message's header."""
    return [line.strip() for line in takewhile(_HEADER_LINE.fullmatch, lines)]


def _add_lines(lines: Sequence[_MessageLine], outline: Outline) -> None:
    depth, run = 0, list[str]()

    def end_run() -> None:
        (joined,) = join_words(["\n".join(run)])
        for part in _BLANK_LINE.split(joined):
            for piece, heading in paragraphs(part):
                outline.add(flatten_text(piece), whole=heading)
        run.clear()

    for line in [*lines, _MessageLine("", 0)]:
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


def _read_marks(lines: Sequence[str]) -> Iterator[_MessageLine]:
    """Count and remove the quotation marks of each line.

    ``>5 bar`` is "more than 5 bar", also inside a quotation, unless the message's marks stand right before words.
    """
    tight = any(_MARKED_WORD.match(line) for line in lines)
    for line in lines:
        rest, depth = line, 0
        while (mark := _MARK.match(rest)) and depth < QUOTATION_DEPTH:
            if _SIGN.match(rest) and not tight and not rest.startswith("> "):
                break
            rest, depth = rest[mark.end() :], depth + 1
        yield _MessageLine(rest, depth)


def begins_original(lines: Sequence[str]) -> bool:
    """Whether an earlier message begins with these lines: a header line below dashes, or some with an address."""
    if not lines:
        return False
    if _SEPARATOR.fullmatch(lines[0]):
        following = next((line for line in lines[1:] if line.strip()), "")
        return _HEADER_LINE.fullmatch(following) is not None
    header = read_header(lines)
    return len(header) >= _HEADER_LINES and "@" in "".join(header)


def title_original(line: str) -> str:
    """Return the name that the line of dashes gives the earlier message."""
    separator = _SEPARATOR.fullmatch(line)
    return (separator and separator[1]) or QUOTATION
