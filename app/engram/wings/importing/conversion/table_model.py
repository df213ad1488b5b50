"""The one model of a table, whatever format it comes from: a grid of cells, written row by row.

An empty cell keeps its column, and a merged cell stands in every place that it covers. Where the first rows name
the columns, each row says the name before each of its values, so that a row is understood without the others.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from engram.wings.importing.conversion.documents import UnreadableError

SEPARATOR = " | "
MOST_COLUMNS = 1_000
"""Columns that one cell may cover; browsers stop there too."""
MOST_PLACES = 2_000_000
"""Places of a grid, most of which a hostile table leaves empty."""
REPEATED_CHARACTERS = 200
"""A longer text stands only where its merged cell begins."""
MISSING = {"n/a", "n.a.", "na", "-", "--", "–", "—", "...", "…"}
"""What stands in the place of a figure that is not there."""
_NAME_CHARACTERS = 60
_YEAR = re.compile(r"(?:19|20)\d\d")


@dataclass(frozen=True, eq=False)
class Cell:
    """A cell as its file has it.

    Attributes:
        text: in one line; "" for an empty cell.
        columns: how many columns it covers, from 1.
        rows: how many rows it covers, from 1.
        heading: whether the file marks it as naming a column or a row.
        strong: whether all of it is bold.
        value: the number or boolean that the text shows, if the file says that it is one.
    """

    text: str
    columns: int = 1
    rows: int = 1
    heading: bool = False
    strong: bool = False
    value: float | bool | None = None


Grid = list[list[Cell | None]]


@dataclass(frozen=True)
class TableLine:
    """A line of a table's text: a row, the names of the columns, or a title inside the table.

    Attributes:
        header: of a row the line that names the columns; "" where nothing names them, and for other lines.
    """

    text: str
    header: str = ""


def write_table(grid: Grid, header_rows: int | None = None) -> Iterator[TableLine]:
    """Write a table, its titles and the names of its columns first.

    Args:
        header_rows: rows at the top that name the columns; None if the file does not say so, so that the marks of
            its cells decide, or what the cells hold.
    """
    if header_rows is not None:
        header_rows = sum(bool(_filled(row)) for row in grid[:header_rows])
    grid = _drop_empty(grid)
    if header_rows is None:
        titles = next((at for at, row in enumerate(grid) if not _is_title(row)), 0)
        yield from (TableLine(_first_text(row)) for row in grid[:titles])
        grid = grid[titles:]
        header_rows = _count_header_rows(grid)
    names = name_columns(grid[:header_rows])
    header = SEPARATOR.join(filter(None, names))
    if header:
        yield TableLine(header)
    header_texts = [_texts(row) for row in grid[:header_rows]]
    for row in grid[header_rows:]:
        if _is_title(row) and _covers_all(row):
            yield TableLine(_first_text(row), header)
        elif not header:
            yield TableLine(SEPARATOR.join(_texts(row)).rstrip(SEPARATOR).lstrip())
        elif _texts(row) not in header_texts:  # tables of several pages repeat their header
            yield TableLine(name_values(names, _texts(row)), header)


def name_values(names: Sequence[str], values: Sequence[str]) -> str:
    """Write the values of a row, each with the name of its column before it, without the empty ones."""
    named = (*names, *[""] * (len(values) - len(names)))
    return SEPARATOR.join(
        f"{name}: {value}" if name else value for name, value in zip(named, values, strict=False) if value
    )


def name_columns(rows: Grid) -> list[str]:
    """Name each column by the cells of the header rows above it, outermost first."""
    width = max(map(len, rows), default=0)
    texts = [_texts(row) for row in rows]
    columns = ([row[at].rstrip(": ") for row in texts if at < len(row) and row[at]] for at in range(width))
    return [" ".join(dict.fromkeys(column)) for column in columns]


def lay_out(source: str, rows: Iterable[Sequence[Cell]]) -> Grid:
    """Put cells into the places that they cover, as browsers do.

    Raises:
        UnreadableError: they cover more than ``MOST_PLACES``.
    """
    rows = list(rows)
    grid: Grid = [[] for _ in rows]
    places = 0
    for at, row in enumerate(rows):
        column = 0
        for cell in row:
            while column < len(grid[at]) and grid[at][column] is not None:
                column += 1
            below = grid[at : at + max(cell.rows, 1)]
            across = min(max(cell.columns, 1), MOST_COLUMNS)
            places += len(below) * across
            if places > MOST_PLACES:
                raise UnreadableError(f"{source} has a table of more than {MOST_PLACES:,} cells.")
            for places_below in below:
                places_below.extend([None] * (column + across - len(places_below)))
                places_below[column : column + across] = [cell] * across
            if (len(below) > 1 or across > 1) and len(cell.text) > REPEATED_CHARACTERS:
                _keep_once(below, cell, column, across)
            column += across
    return grid


def is_figure(text: str) -> bool:
    """Whether a cell holds a number, perhaps with a short unit, or a date in figures."""
    return any(map(str.isdigit, text)) and sum(map(str.isalpha, text)) <= 3


def _drop_empty(grid: Grid) -> Grid:
    """The grid without the rows and columns that have no text at all."""
    used = sorted({at for row in grid for at, cell in enumerate(row) if cell is not None and cell.text})
    width = used[-1] + 1 if used else 0
    rows = [[*row, *[None] * (width - len(row))] for row in grid if _filled(row)]
    return rows if len(used) == width else [[row[at] for at in used] for row in rows]


def _keep_once(rows: Grid, cell: Cell, column: int, across: int) -> None:
    for row in rows:
        row[column : column + across] = [Cell("")] * across
    rows[0][column] = cell


def _texts(row: Sequence[Cell | None]) -> list[str]:
    return ["" if cell is None else cell.text for cell in row]


def _filled(row: Sequence[Cell | None]) -> list[Cell]:
    return [cell for cell in row if cell is not None and cell.text]


def _first_text(row: Sequence[Cell | None]) -> str:
    return _filled(row)[0].text


def _is_title(row: Sequence[Cell | None]) -> bool:
    """Whether a row has one cell with a text."""
    return len(set(map(id, _filled(row)))) == 1


def _covers_all(row: Sequence[Cell | None]) -> bool:
    return len(row) > 1 and len(set(map(id, row))) == 1


def _count_header_rows(grid: Grid) -> int:
    """Count the rows at the top that name the columns; one row is left below them."""
    if len(grid) < 2:
        return 0
    if any(cell.heading for row in grid for cell in _filled(row)):
        count = 0
        while count < len(grid) and all(cell.heading for cell in _filled(grid[count])):
            count += 1
        return count if count < len(grid) else 1
    if len(grid) > 2 and _is_grouped(grid[0]):  # "2023" above "Q1" and "Q2"
        names = [Cell(name) for name in name_columns(grid[:2])]
        if looks_like_header(names, grid[2:], named=True):
            return 2
    return int(looks_like_header(grid[0], grid[1:]))


def _is_grouped(row: Sequence[Cell | None]) -> bool:
    """Whether a cell with a text covers some columns of a row, but not all."""
    repeated = any(cell is after and cell is not None and cell.text for cell, after in pairwise(row))
    return repeated and not _covers_all(row)


def looks_like_header(first: Sequence[Cell | None], rows: Grid, *, named: bool = False) -> bool:
    """Whether a row that nothing marks names the columns below it.

    It does if all of it is bold and the next row is not, if a name stands above figures only, or if each of at
    least three cells is a short text without figures. The first cell may be empty above names of rows. A form of
    two columns ("Age | 30") has no such row.

    Args:
        named: whether figures in it are parts of names, as in "2023 Q1".
    """
    cells, names = _filled(first), [text.casefold() for text in _texts(first)]
    if len(first) < 2 or not all(names[1:]):
        return False
    texts = [_texts(row) for row in rows]
    is_matrix = not names[0] and all(row and row[0] for row in texts)
    if rows and all(cell.strong for cell in cells):
        return not all(cell.strong for cell in _filled(rows[0]))
    wide = len(first) > 2
    if not named and any(is_figure(name) and not (wide and _may_name(name)) for name in names):
        return False
    for at in range(len(first)):
        below = [row[at] for row in texts if at < len(row) and row[at] and row[at].casefold() not in MISSING]
        if names[at] and len(below) >= (1 if wide else 2) and all(map(is_figure, below)):
            return True
    return (
        wide
        and len(set(names)) == len(names)
        and all(
            name and len(name) <= _NAME_CHARACTERS and not name.endswith(":") and not any(map(str.isdigit, name))
            for name in (names[1:] if is_matrix else names)
        )
    )


@dataclass(frozen=True)
class SheetPart:
    """A table of a sheet.

    Attributes:
        is_form: whether each row is a label and its value, so that no row names the columns.
    """

    rows: Grid
    is_form: bool = False


def split_tables(grid: Grid, gaps: Collection[int]) -> list[SheetPart]:
    """Split a sheet into its tables: at an empty row, if a title, names of columns or a form follow.

    Args:
        gaps: numbers of the rows of the grid, from 0, that an empty row stands above.
    """
    tables = [SheetPart([])]
    begins = sorted(gap for gap in gaps if gap < len(grid))
    for at, end in zip([0, *begins], [*begins, len(grid)], strict=True):
        part, above = grid[at:end], tables[-1].rows
        is_form = _is_form(part, above)
        if above and (is_form or _is_title(part[0]) or looks_like_header(part[0], part[1:])):
            tables.append(SheetPart([], is_form))
        tables[-1].rows.extend(part)
    return tables


def _is_form(part: Grid, above: Grid) -> bool:
    """Whether rows below an empty one are labels and values: only two columns of a wider table, or with colons.

    Figures below figures go on with the table: they are its sums.
    """
    rows = [row for row in above if not _is_title(row)]
    if len(part) < 2 or not rows or any(len(_filled(row)) != 2 or not all(_texts(row)[:2]) for row in part):
        return False
    if all(_texts(row)[0].endswith(":") for row in part):
        return True
    added, known = ([is_figure(_texts(row)[1]) for row in one] for one in (part, rows[1:]))
    return all(len(_filled(row)) > 2 for row in rows) and not (all(added) and all(known))


def _may_name(text: str) -> bool:
    """Whether a text with figures may be the name of a column: a year, or a letter with a figure."""
    return bool(_YEAR.fullmatch(text)) or text[0].isalpha()
