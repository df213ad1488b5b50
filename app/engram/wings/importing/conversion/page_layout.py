"""The text of a page of a PDF, and what its letters' places say: raised figures, and the columns of tables."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from ctypes import byref, c_double, create_string_buffer
from math import inf, pi
from typing import Any, NamedTuple

from engram.wings.importing.conversion.inline_text import superscript
from engram.wings.importing.conversion.line_ends import MARK
from engram.wings.importing.conversion.outline import library
from engram.wings.importing.conversion.prose import STOPS
from engram.wings.importing.conversion.table_model import MISSING, Cell, Grid, TableLine, is_figure, write_table

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
_RIGHT_ANGLE = pi / 2
_ANGLE_DIGITS = 2
"""Of an angle in right angles: half a degree is none."""
_LEAST_NAMES = 3
"""Words apart that name the columns of a table."""
_MOST_WORDS = 8
"""Words of a line that may be a row of a table of words."""
_LEADING = 2
"""Distance of two lines of a cell at most, in heights of the line."""
_SHORT_CELL = 30
"""Characters of a cell that stands in no sentence."""
_BOLD = re.compile(rb"bold|black|heavy|demi", re.IGNORECASE)
_FONT_NAME_BYTES = 200
_RAISE = 0.2
"""How far a superscript stands above its line at least, in heights of the line."""


class _Line(NamedTuple):
    """A line of a page.

    Attributes:
        at: where it begins in the text of the page.
        turns: by how many right angles its letters are turned; None: by another angle, and places say nothing.
    """

    at: int
    text: str
    turns: int | None


class _Segment(NamedTuple):
    """Words that stand together, between two places of a line."""

    left: float
    right: float
    text: str


def read_lines(page: Any) -> tuple[list[str], str]:
    """The lines of a page, and its plain text as pdfium gives it.

    A row of a table is ``ROW``, its text, ``ROW``, and the names of the columns.
    """
    text = page.get_textpage()
    try:
        plain = str(text.get_text_range())
        whole = _CONTROLS.sub(" ", plain.replace("\ufffe", MARK))
        if len(whole) != text.count_chars():  # letters beyond the basic plane: places cannot be told
            return whole.replace("\r\n", "\n").strip().split("\n"), plain
        return list(_Layout(text, whole).read()), plain
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
        self._turns = 0  # of the letters whose places are asked for
        self._known_segments: dict[tuple[int, int], list[_Segment]] = {}
        self._lines: list[_Line] = []
        at = 0
        for words in whole.split("\r\n"):
            line = _Line(at, words, self._find_turns(at, words))
            joint = self._find_joint(self._lines[-1], line) if words and self._lines else ""
            if joint:
                before = self._lines.pop()
                self._lines.append(before._replace(text=f"{before.text}{joint}{joint}{words}"))
            else:
                self._lines.append(line)
            at += len(words) + 2

    def _find_turns(self, at: int, line: str) -> int | None:
        """By how many right angles the letters of a line are turned, see ``_Line``."""
        word = line.strip()
        if not word:
            return 0
        first = at + line.index(word)
        angles = {
            round(self._raw.FPDFText_GetCharAngle(self._text.raw, place) / _RIGHT_ANGLE, _ANGLE_DIGITS) % 4
            for place in (first, first + len(word) - 1)
        }
        return int(min(angles)) if len(angles) == 1 and min(angles).is_integer() else None

    def _find_joint(self, line: _Line, following: _Line) -> str:
        """Find the text that stands for each letter of the line end between a line and one that stands behind it.

        pdfium ends a line after a superscript, and before a short cell of a table. Empty: they are two lines.
        """
        if not line.text or line.turns is None or line.turns != following.turns:
            return ""
        self._turns = line.turns
        size = self._size(line.at)
        if abs(self._baseline(following.at) - self._baseline(line.at)) >= _LEVEL * size:
            return ""
        gap = self._box(following.at)[0] - self._box(line.at + len(line.text) - 1)[2]
        if gap <= -size:
            return ""
        return _JOINT if gap < size else " "

    def read(self) -> Iterator[str]:
        """The lines with superscripts and rows."""
        at = 0
        while at < len(self._lines):
            line = self._lines[at]
            self._turns = line.turns or 0
            is_row = self._is_row(at, line.turns)
            end = at + 1
            while end < len(self._lines) and self._is_row(end, line.turns):
                end += 1
            named = [] if is_row or end - at < 3 or line.turns is None else self._named_table(self._lines[at:end])
            if not named and not is_row:
                end, named = self._table_of_words(at)
            if named:
                yield from named
                at = end
            elif is_row and end - at > 1:
                yield from self._table(self._lines[at:end])
                at = end
            else:
                yield line.text.replace(_JOINT, "") if line.turns is None else self._mark(line.at, line.text)
                at += 1

    def _is_row(self, at: int, turns: int | None) -> bool:
        """Whether a line looks like the row of a table whose letters are turned so."""
        line = self._lines[at]
        return turns is not None and line.turns == turns and _looks_like_row(line.text)

    def _table(self, lines: Sequence[_Line]) -> list[str]:
        """The rows of a table below the names of their columns."""
        grid = _align([self._segments(line.at, line.text) for line in lines])
        if grid is None or not _holds_figures(grid[1:], len(grid[0])):
            return [f"{ROW}{self._mark(line.at, line.text)}{ROW}" for line in lines]
        return [f"{ROW}{line.text}{ROW}{line.header}" for line in write_table(grid)]

    def _named_table(self, lines: Sequence[_Line]) -> list[str]:
        """The rows of a table whose first line names the columns; empty if it does not."""
        names, *rows = [self._segments(line.at, line.text) for line in lines]
        grid = _align([names, *rows])
        if len(names) < _LEAST_NAMES or grid is None or len(grid[0]) - len(names) > 1:
            return []
        if lines[0].text.rstrip().endswith(STOPS) or not _holds_figures(grid[1:], len(grid[0])):
            return []
        return [f"{ROW}{line.text}{ROW}{line.header}" for line in write_table(grid, 1)]

    def _table_of_words(self, at: int) -> tuple[int, list[str]]:
        """The rows of a table whose first line names each column, and where it ends.

        Bold names may stand above cells of several lines. Names in the letters of the rows have no figures
        and stand above at least three rows, two names above two rows, of short cells, none of which is empty.
        Empty if that is not sure.
        """
        line = self._lines[at]
        if line.turns is None or " " not in line.text or line.text.rstrip().endswith(STOPS):
            return at, []
        bold = self._is_bold(line)
        few = all(0 < row.text.count(" ") < _MOST_WORDS for row in self._lines[at : at + 4])
        if not bold and (not few or any(map(str.isdigit, line.text))):
            return at, []
        names = self._segments(line.at, line.text)
        if len(names) < (2 if bold else _LEAST_NAMES):
            return at, []
        end, rows = self._rows_of_words(at + 1, names, bold)
        short = bold and len(names) >= _LEAST_NAMES
        if len(rows) < (2 if bold else 3) or not (short or _are_short([names, *rows])):
            return at, []
        grid: Grid = [[Cell(name.text) for name in names], *(_join_cells(row, names) for row in rows)]
        return end, [f"{ROW}{row.text}{ROW}{row.header}" for row in write_table(grid, 1)]

    def _rows_of_words(self, at: int, names: Sequence[_Segment], bold: bool) -> tuple[int, list[list[_Segment]]]:
        """The words of the rows below the names of columns, and where they end.

        A word in the first column begins a row. Below bold names, a line beside or below one of a row continues it.
        """
        rows: list[list[_Segment]] = []
        begins, heights = [at], list[float]()
        for place in range(at, len(self._lines)):
            line = self._lines[place]
            cells = self._segments(line.at, line.text) if line.text.strip() and line.turns is not None else []
            columns = [_find_column(cell, names) for cell in cells]
            alone = None not in columns and len(set(columns)) == len(columns)
            if not cells or not alone or line.turns != self._lines[at - 1].turns or (bold and self._is_bold(line)):
                break
            if MARK in line.text:
                return at, []
            if 0 in columns:
                if rows and len(rows[-1]) < 2:
                    break
                rows.append([])
                begins.append(place)
                heights.clear()
            elif not bold or not any(
                abs(height - self._baseline(line.at)) < _LEADING * self._size(line.at) for height in heights
            ):
                break
            heights.append(self._baseline(line.at))
            rows[-1] += cells
            end = place + 1
        if rows and len(rows[-1]) < 2:
            end = begins[len(rows)]
            rows.pop()
        return (end, rows) if rows else (at, [])

    def _is_bold(self, line: _Line) -> bool:
        """Whether the font of a line's first letter is named after bold letters."""
        word = line.text.strip()
        name = create_string_buffer(_FONT_NAME_BYTES)
        if word:
            place = line.at + line.text.index(word)
            self._raw.FPDFText_GetFontInfo(self._text.raw, place, name, _FONT_NAME_BYTES, None)
        return _BOLD.search(name.value) is not None

    def _segments(self, at: int, line: str) -> list[_Segment]:
        """The words of a line, those together that only a space parts. A line is held against several above it."""
        segments = self._known_segments.get((at, self._turns))
        if segments is not None:
            return segments
        segments = self._known_segments[at, self._turns] = []
        size = self._size(at)
        for word in _WORD.finditer(line):
            first, last = self._box(at + word.start()), self._box(at + word.end() - 1)
            left, right = min(first[0], last[0]), max(first[2], last[2])  # the first letter may be the rightmost
            text = self._mark(at + word.start(), word[0])
            gap = left - segments[-1].right if segments else inf
            if gap < _GAP * size or (segments and gap < _SPACES * self._width(at + word.start() - 1)):
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
        """Find where the raised end of a word begins; 0 if none of it is raised."""
        base, last = self._baseline(at), self._baseline(at + len(word) - 1)
        if last <= base or last <= (least := base + _RAISE * self._size(at)):
            return 0
        return next(n for n in range(1, len(word)) if self._baseline(at + n) > least)

    def _baseline(self, at: int) -> float:
        """The height of the line that a letter stands on."""
        x, y = c_double(), c_double()
        self._raw.FPDFText_GetCharOrigin(self._text.raw, at, byref(x), byref(y))
        return self._turn(x.value, y.value)[1]

    def _box(self, at: int) -> tuple[float, float, float, float]:
        """The left, lower, right and upper end of a letter, as who reads its line sees them."""
        box = self._raw.FS_RECTF()
        self._raw.FPDFText_GetLooseCharBox(self._text.raw, at, byref(box))
        if not self._turns:
            return box.left, box.bottom, box.right, box.top
        (x, y), (other_x, other_y) = self._turn(box.left, box.bottom), self._turn(box.right, box.top)
        return min(x, other_x), min(y, other_y), max(x, other_x), max(y, other_y)

    def _turn(self, x: float, y: float) -> tuple[float, float]:
        """A place on a page that is turned until the letters stand upright."""
        return ((x, y), (-y, x), (-x, -y), (y, -x))[self._turns]

    def _width(self, at: int) -> float:
        left, _, right, _ = self._box(at)
        return right - left

    def _size(self, at: int) -> float:
        _, bottom, _, top = self._box(at)
        return top - bottom


def _looks_like_row(line: str) -> bool:
    """Whether a line looks like the row of a table.

    It ends with figures, at least as many as other words. A word for a missing figure counts as one beside another.
    """
    cells = line.split()[1:]
    if (
        not cells
        or not _is_filled(cells[-1])
        or (line.rstrip().endswith((".", ",", ";")) and cells[-1].casefold() not in MISSING)
    ):
        return False
    return 2 * sum(map(_is_filled, cells)) >= len(cells) and any(map(is_figure, cells))


def _is_filled(word: str) -> bool:
    """Whether a word is a figure, or stands for a missing one."""
    return is_figure(word) or word.casefold() in MISSING


def _align(rows: Sequence[Sequence[_Segment]]) -> Grid | None:
    """The cells of rows by their columns; None if two words of a row stand in one column."""
    columns = _columns(rows)
    grid: Grid = [_cells(row, columns) for row in rows]
    alone = all(len(row) == len(columns) - cells.count(None) for row, cells in zip(rows, grid, strict=True))
    return grid if alone else None


def _find_column(cell: _Segment, names: Sequence[_Segment]) -> int | None:
    """The number of the only name that a cell stands below, or begins with."""
    found = [
        at
        for at, name in enumerate(names)
        if (cell.left < name.right and name.left < cell.right) or abs(cell.left - name.left) < 1
    ]
    return found[0] if len(found) == 1 else None


def _join_cells(row: Sequence[_Segment], names: Sequence[_Segment]) -> list[Cell | None]:
    """The cells of a row, whose words may stand in several lines."""
    texts: dict[int | None, list[str]] = defaultdict(list)
    for segment in row:
        texts[_find_column(segment, names)].append(segment.text)
    return [Cell(" ".join(texts[at])) if at in texts else None for at in range(len(names))]


def _are_short(rows: Sequence[Sequence[_Segment]]) -> bool:
    """Whether each row has a short cell in each column, as lines of sentences have not."""
    texts = [cell.text for row in rows for cell in row]
    return all(len(row) == len(rows[0]) for row in rows) and all(
        len(text) <= _SHORT_CELL and not text.endswith((*STOPS, ",", ";", "-")) for text in texts
    )


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
    """Return the words of a row in each column."""
    cells: list[Cell | None] = [None] * len(columns)
    for segment in row:
        cells[sum(left <= segment.left for left, _ in columns) - 1] = Cell(segment.text)
    return cells


def _holds_figures(rows: Grid, width: int) -> bool:
    """Whether more columns after the first hold figures than words: others are words that stand far apart."""
    texts = ([row[at].text for row in rows if row[at] is not None] for at in range(1, width))  # type: ignore[union-attr]
    figures = [2 * sum(map(is_figure, column)) >= max(len(column), 1) for column in texts]
    return 2 * sum(figures) > len(figures)
