"""Shared parts of readers: blocks below headings, and text without its layout."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any

from engram.core.text.joining import join_texts
from engram.core.text.words import is_blank
from engram.wings.importing.conversion.documents import Block, Document, NotInstalledError, UnreadableError
from engram.wings.importing.conversion.table_model import TableLine

HEADING_CHARACTERS = 200
"""A longer heading is a paragraph in a heading's style."""
QUOTATION = "Quoted message"
CODE_INDENTATION = "    "
"""What a passage shows before a line of code, as Markdown does."""
_ENCODED_CHARACTERS = 1_000
"""Shorter runs of letters and figures may be a word, a key or an address."""
_ENCODED = re.compile(
    r"data:[\w.+/-]*(?:;[\w=.-]+)*;base64,[A-Za-z0-9+/=_-]*"
    rf"|(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/_-]{{{_ENCODED_CHARACTERS},}}"
    r"|(?:[A-Za-z0-9+/]{60,76}\s+){10,}[A-Za-z0-9+/]*)={0,2}"
)


class Outline:
    """Collects blocks below the headings that are open."""

    def __init__(self, title: str | None = None) -> None:
        self.title = flatten_text(title or "") or None
        self.page: int | None = None
        self.metadata: Mapping[str, object] | None = None  # of a part of the document, see Block
        self._blocks: list[Block] = []
        self._open: list[tuple[int, str]] = []
        self._empty: Block | None = None  # a heading that nothing stands below yet
        self._tops: list[tuple[str, int]] = []  # headings of level 1, with the number of blocks above each
        self._quotations: list[str] = []  # what the message quotes here, outermost first
        self.number = ""  # of the list item whose text comes next
        self.encoded = 0  # characters of encoded files in the text, which are left out

    def open_heading(self, level: int, text: str) -> None:
        """Open a heading and close those of its level and below. A long one is a paragraph."""
        text = flatten_text(text)
        if len(text) > HEADING_CHARACTERS:
            self.add(text)
            return
        self.close(level)
        self._empty = self._block(text, whole=True)
        self._open.append((level, text))
        if level == 1:
            self._tops.append((text, len(self._blocks)))

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The blocks so far."""
        return tuple(self._blocks)

    def close(self, level: int) -> None:
        """Close the headings of this level and below."""
        if self._empty is not None and self._open and level <= self._open[-1][0]:
            self._blocks.append(self._empty)
            self._empty = None
        self._open = [(above, name) for above, name in self._open if above < level]

    def add(self, text: str, *, whole: bool = False, is_header: bool = False, lead: str = "") -> None:
        """Add a block, unless it is blank."""
        text, encoded = drop_encoded(text)
        self.encoded += encoded
        if not is_blank(text):
            block = self._block(text, whole=whole)
            self._blocks.append(replace(block, is_header=is_header, lead=lead or self.number))
            self._empty, self.number = None, ""

    def lines(self, code: str) -> None:
        """Add code: each line is a unit."""
        for line in code.split("\n"):
            self.add(line.rstrip(), whole=True, lead=CODE_INDENTATION)

    def table(self, lines: Iterable[TableLine]) -> None:
        """Add a table: each line is a unit."""
        for line in lines:
            self.add(line.text, whole=True)
            if line.header and line.text and self._blocks:
                self._blocks[-1] = replace(self._blocks[-1], header=line.header)

    def open_quotation(self, heading: str = QUOTATION) -> None:
        """Begin what the message quotes. A line before it that ends in a colon ("Ann wrote:") is its heading."""
        if heading == QUOTATION and self._blocks:
            last = self._blocks[-1]
            here = last.headings == self._headings() and last.text.endswith(":")
            if here and len(last.text) <= HEADING_CHARACTERS:
                heading = self._blocks.pop().text
        self._quotations.append(heading)

    def close_quotation(self) -> None:
        """End the innermost quotation."""
        self._quotations.pop()

    def _headings(self) -> tuple[str, ...]:
        return (*(name for _, name in self._open), *self._quotations)

    def _block(self, text: str, *, whole: bool) -> Block:
        return Block(
            text, self._headings(), self.page, whole, quoted=bool(self._quotations), metadata=self.metadata
        )

    def document(self, source: str, kind: str, notes: tuple[str, ...] = ()) -> Document:
        """Return the document.

        The only heading of level 1 is its title if it stands first and nothing else gives another title.

        Raises:
            UnreadableError: it has no text.
        """
        if self._empty is not None:
            self._blocks.append(self._empty)
            self._empty = None
        blocks, title = tuple(self._blocks), self.title
        if len(self._tops) == 1 and self._tops[0][1] == 0 and title in (None, self._tops[0][0]):
            title = self._tops[0][0]
            blocks = tuple(
                replace(block, headings=block.headings[1:]) if block.headings[:1] == (title,) else block
                for block in blocks
            )
        return document(source, title, blocks, kind, (*notes, *note_encoded(source, self.encoded)))


def document(
    source: str, title: str | None, blocks: Sequence[Block], kind: str, notes: tuple[str, ...] = ()
) -> Document:
    """Return the document under its own title, or under its file's name.

    Raises:
        UnreadableError: there are no blocks.
    """
    if not blocks:
        raise UnreadableError(f"{source} has no text.")
    own = flatten_text(title or "")
    return Document(source, own or stem(source), tuple(blocks), kind, notes, titled_by_name=not own)


def stem(source: str) -> str:
    """The file's name without its folders and its ending."""
    return PurePosixPath(source.replace("\\", "/")).stem or source


def drop_encoded(text: str) -> tuple[str, int]:
    """Return the text without files that are written into it as base64, and the number of characters left out."""
    if len(text) < _ENCODED_CHARACTERS and ";base64," not in text:
        return text, 0
    plain = _ENCODED.sub(lambda run: "" if _is_encoded(run[0]) else run[0], text)
    return plain, len(text) - len(plain)


def _is_encoded(run: str) -> bool:
    """Whether a run is base64: that mixes capitals, small letters and figures, as no long word and no gene does."""
    kinds = (str.islower, str.isupper, str.isdigit)
    return ";base64," in run[:200] or all(any(map(kind, run[:400])) for kind in kinds)


def note_encoded(source: str, characters: int) -> tuple[str, ...]:
    """The line that says that encoded files were left out; none if there were none."""
    return (f"{source}: left out {characters:,} characters of encoded files",) if characters else ()


_PRIVATE = re.compile("[\uf06f-\uf0fe]")
_TICKS = str.maketrans("\uf06f\uf071\uf072\uf0a8\uf0fb\uf0fc\uf0fd\uf0fe", "☐☐☐☐✗✓☒☑")


def flatten_text(text: str) -> str:
    """The text in one line; a line end inside Chinese or Japanese leaves no space.

    Ticks and boxes of Wingdings, as files without its name have them, become signs that others know.
    """
    if not text.isascii() and _PRIVATE.search(text):
        text = text.translate(_TICKS)
    lines = (" ".join(line.split()) for line in text.split("\n"))
    return join_texts(line for line in lines if line)


def library(name: str) -> Any:
    """Import a library of the extra ``engram[import]``.

    Raises:
        NotInstalledError: it is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise NotInstalledError(f"{name} is not installed: pip install 'engram[import]'.") from error
