"""The text of a page of a PDF, and what its letters' places say: raised figures, and the columns of tables."""

import re
from collections.abc import Iterator, Sequence
from ctypes import byref, c_double
from typing import Any, NamedTuple

from engram.wings.importing.conversion.inline_text import superscript
from engram.wings.importing.conversion.line_ends import MARK
from engram.wings.importing.conversion.outline import library
from engram.wings.importing.conversion.table_model import Cell, Grid, TableLine, is_figure, write_table

ROW = "\x03"
"""What stands before each row of a table, and between it and the names of the table's columns."""
_WORD = re.compile(r"\S+")
_FIGURES = re.compile(r"[^\W_]*\d[^\W_]*(?:[-+−–]\d+)?")
_CONTROLS = re.compile(r"[\x00\x01\x03-\x08\x0b\x0c\x0e-\x1f]")
_JOINT = "\x04"
"""What stands, twice, in the place of a line end that is none."""
_LEVEL = 0.05
"""How far two letters of one line may differ in height, in heights of the line."""
_GAP = 0.3
"""White space between two columns, in heights of a line; that between two words is a fifth of one."""
_SPACES = 1.4
"""The same in spaces as wide as the one that stands there, which is wide where all letters are."""
_RAISE = 0.2
"""How far a superscript stands above its line at least, in heights of the line."""


class _Segment(NamedTuple):
    """Words that stand together, between two places of a line."""

    left: float
    right: float
    text: str


def read_lines(page: Any) -> list[str]:
    """The lines of a page. A row of a table is ``ROW``, its text, ``ROW``, and the names of the columns."""
    text = page.get_textpage()
    try:
        whole = _CONTROLS.sub(" ", str(text.get_text_range()).replace("\ufffe", MARK))
        if len(whole) != text.count_chars():  # letters beyond the basic plane: places cannot be told
            return whole.replace("\r\n", "\n").strip().split("\n")
        return list(_Layout(text, whole).read())
    finally:
        text.close()


def read_row(line: str) -> TableLine | None:
    """The row of a table that a line is; None for other lines."""
    if not line.startswith(ROW):
        return None
    _, row, header = line.split(ROW)
    return TableLine(row, header)


class _Layout:
    """Reads the text of one page, whose letters have the places of ``text``."""

    def __init__(self, text: Any, whole: str) -> None:
        self._text = text
        self._raw = library("pypdfium2.raw")
        self._lines: list[tuple[int, str]] = []
        at = 0
        for line in whole.split("\r\n"):
            if line and self._lines and self._goes_on(*self._lines[-1], at):
                begin, before = self._lines.pop()
                self._lines.append((begin, f"{before}{_JOINT}{_JOINT}{line}"))
            else:
                self._lines.append((at, line))
            at += len(line) + 2

    def _goes_on(self, at: int, line: str, following: int) -> bool:
        """Whether the text at ``following`` stands behind a line: pdfium ends a line after a superscript."""
        if not line:
            return False
        size = self._size(at)
        gap = self._box(following)[0] - self._box(at + len(line) - 1)[2]
        return abs(self._baseline(following) - self._baseline(at)) < _LEVEL * size and -size < gap < size

    def read(self) -> Iterator[str]:
        """The lines with superscripts and rows."""
        at = 0
        while at < len(self._lines):
            end = at
            while end < len(self._lines) and _is_row(self._lines[end][1]):
                end += 1
            if end - at > 1:
                yield from self._table(self._lines[at:end])
                at = end
            else:
                yield self._mark(*self._lines[at])
                at += 1

    def _table(self, lines: Sequence[tuple[int, str]]) -> list[str]:
        """The rows of a table below the names of their columns."""
        rows = [self._segments(*line) for line in lines]
        columns = _columns(rows)
        grid = [_cells(row, columns) for row in rows]
        alone = all(len(row) == len(columns) - cells.count(None) for row, cells in zip(rows, grid, strict=True))
        if not alone or not _holds_figures(grid[1:], len(columns)):
            return [f"{ROW}{self._mark(*line)}{ROW}" for line in lines]
        return [f"{ROW}{line.text}{ROW}{line.header}" for line in write_table(grid)]

    def _segments(self, at: int, line: str) -> list[_Segment]:
        """The words of a line, those together that only a space parts."""
        segments: list[_Segment] = []
        size = self._size(at)
        for word in _WORD.finditer(line):
            first, last = self._box(at + word.start()), self._box(at + word.end() - 1)
            left, right = min(first[0], last[0]), max(first[2], last[2])  # the first letter may be the rightmost
            text = self._mark(at + word.start(), word[0])
            if segments and left - segments[-1].right < max(
                _GAP * size, _SPACES * self._width(at + word.start() - 1)
            ):
                before = segments.pop()
                segments.append(_Segment(min(before.left, left), max(before.right, right), f"{before.text} {text}"))
            else:
                segments.append(_Segment(left, right, text))
        return segments

    def _mark(self, at: int, line: str) -> str:
        """A line whose raised figures are written as superscripts."""

        def write(figures: re.Match[str]) -> str:
            word = figures[0]
            raised = self._find_raised(at + figures.start(), word) if len(word) > 1 else 0
            return word[:raised] + superscript(word[raised:], word[:raised]) if raised else word

        return _FIGURES.sub(write, line).replace(_JOINT, "")

    def _find_raised(self, at: int, word: str) -> int:
        """Where the raised end of a word begins; 0 if none of it is raised."""
        line, least = self._baseline(at), _RAISE * self._size(at)
        return next((n for n in range(1, len(word)) if self._baseline(at + n) - line > least), 0)

    def _baseline(self, at: int) -> float:
        """The height of the line that a letter stands on."""
        x, y = c_double(), c_double()
        self._raw.FPDFText_GetCharOrigin(self._text.raw, at, byref(x), byref(y))
        return y.value

    def _box(self, at: int) -> tuple[float, float, float, float]:
        left, bottom, right, top = self._text.get_charbox(at, loose=True)
        return left, bottom, right, top

    def _width(self, at: int) -> float:
        left, _, right, _ = self._box(at)
        return right - left

    def _size(self, at: int) -> float:
        _, bottom, _, top = self._box(at)
        return top - bottom


def _is_row(line: str) -> bool:
    """Whether a line looks like the row of a table: it ends with figures, at least as many as other words."""
    rest = line.split()[1:]
    ends = line.rstrip().endswith((".", ",", ";"))
    return bool(rest) and is_figure(rest[-1]) and not ends and 2 * sum(map(is_figure, rest)) >= len(rest)


def _columns(rows: Sequence[Sequence[_Segment]]) -> list[tuple[float, float]]:
    """The columns of a table, from left to right: segments of its rows that stand above each other."""
    columns: list[tuple[float, float]] = []
    for segment in sorted(segment for row in rows for segment in row):
        if columns and segment.left < columns[-1][1]:
            columns[-1] = (columns[-1][0], max(columns[-1][1], segment.right))
        else:
            columns.append((segment.left, segment.right))
    return columns


def _cells(row: Sequence[_Segment], columns: Sequence[tuple[float, float]]) -> list[Cell | None]:
    """What a row has in each column."""
    cells: list[Cell | None] = [None] * len(columns)
    for segment in row:
        cells[sum(left <= segment.left for left, _ in columns) - 1] = Cell(segment.text)
    return cells


def _holds_figures(rows: Grid, width: int) -> bool:
    """Whether more columns after the first hold figures than words: others are words that stand far apart."""
    texts = ([row[at].text for row in rows if row[at] is not None] for at in range(1, width))  # type: ignore[union-attr]
    figures = [2 * sum(map(is_figure, column)) >= max(len(column), 1) for column in texts]
    return 2 * sum(figures) > len(figures)
