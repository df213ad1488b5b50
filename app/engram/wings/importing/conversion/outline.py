"""Shared parts of readers: blocks below headings, and text without its layout."""

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import PurePosixPath
from typing import Any

from engram.wings.importing.conversion.documents import Block, Document, NotInstalledError, UnreadableError

HEADING_CHARACTERS = 200
"""A longer heading is a paragraph in a heading's style."""


class Outline:
    """Collects blocks below the headings that are open."""

    def __init__(self, title: str | None = None) -> None:
        self.title = flatten_text(title or "") or None
        self.page: int | None = None
        self._blocks: list[Block] = []
        self._open: list[tuple[int, str]] = []
        self._empty: Block | None = None  # a heading that nothing stands below yet
        self._tops: list[tuple[str, int]] = []  # headings of level 1, with the number of blocks above each

    def open_heading(self, level: int, text: str) -> None:
        """Open a heading and close those of its level and below. A long one is a paragraph."""
        text = flatten_text(text)
        if len(text) > HEADING_CHARACTERS:
            self.add(text)
            return
        self.close(level)
        self._empty = Block(text, tuple(name for _, name in self._open), self.page, whole=True)
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

    def add(self, text: str, *, whole: bool = False) -> None:
        """Add a block, unless it is blank."""
        if text.strip():
            self._blocks.append(Block(text, tuple(name for _, name in self._open), self.page, whole))
            self._empty = None

    def lines(self, code: str) -> None:
        """Add code: each line is a unit."""
        for line in code.splitlines():
            self.add(line.rstrip(), whole=True)

    def row(self, cells: Sequence[str]) -> None:
        """Add a row of a table."""
        self.add(" | ".join(cell for cell in cells if cell), whole=True)

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
        return document(source, title, blocks, kind, notes)


def document(
    source: str, title: str | None, blocks: Sequence[Block], kind: str, notes: tuple[str, ...] = ()
) -> Document:
    """Return the document under its own title, or under its file's name.

    Raises:
        UnreadableError: there are no blocks.
    """
    if not blocks:
        raise UnreadableError(f"{source} has no text" + (": is it a scan?" if kind == "pdf" else "."))
    return Document(source, flatten_text(title or "") or stem(source), tuple(blocks), kind, notes)


def stem(source: str) -> str:
    """The file's name without its folders and its ending."""
    return PurePosixPath(source.replace("\\", "/")).stem or source


def flatten_text(text: str) -> str:
    """The text in one line."""
    return " ".join(text.split())


def library(name: str) -> Any:
    """Import a library of the extra ``engram[import]``.

    Raises:
        NotInstalledError: it is not installed.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise NotInstalledError(f"{name} is not installed: pip install 'engram[import]'.") from error
