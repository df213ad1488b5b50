"""Readers of tables: CSV, TSV and spreadsheets."""

import csv
import datetime
import io
import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from engram.wings.importing.conversion import records
from engram.wings.importing.conversion.documents import Conversion, Document, ImportedPassage, UnreadableError
from engram.wings.importing.conversion.encodings import decode_text, note
from engram.wings.importing.conversion.import_limits import EMPTY_ROWS, ConversionLimits, check_zip
from engram.wings.importing.conversion.outline import Outline, library
from engram.wings.importing.conversion.records import Record

DELIMITERS = ",;\t|"


def table(source: str, data: bytes, limits: ConversionLimits) -> Conversion:
    """CSV or TSV: a row is a passage, see ``records.passages``.

    Raises:
        UnreadableError: the first line does not name columns, a row does not fit them, or two rows have one id.
    """
    text, encoding = decode_text(source, data)
    passages_made = tuple(records.passages(source, rows(source, text, limits), "csv"))
    if not passages_made:
        raise UnreadableError(f"{source} has no text.")
    return Conversion(passages_made, note(source, encoding))


def rows(source: str, text: str, limits: ConversionLimits) -> Iterator[Record]:
    """Yield the rows of a table whose first line names the columns.

    Raises:
        UnreadableError: there is no such line, it names a column twice, or a row has more values than columns.
    """
    try:
        dialect: type[csv.Dialect] | csv.Dialect = csv.Sniffer().sniff(text[:20_000], DELIMITERS)
    except csv.Error:
        dialect = csv.excel  # one column, or too little to tell
    reader = csv.DictReader(io.StringIO(text, newline=""), dialect=dialect)
    cells = 0
    try:
        columns = [name.strip() for name in reader.fieldnames or ()]
        if not columns or len({name.casefold() for name in columns}) < len(columns):
            raise UnreadableError(f"{source}: the first line does not name columns, each once.")
        reader.fieldnames = columns
        for number, row in enumerate(reader, 1):
            if None in row:
                raise UnreadableError(f"{source}: line {reader.line_num} has more values than there are columns.")
            values = {name: value.strip() for name, value in row.items() if value and value.strip()}
            cells += len(values)
            if cells > limits.cells:
                raise UnreadableError(f"{source} has more than {limits.cells:,} cells.")
            yield Record(values, number)
    except csv.Error as error:
        raise UnreadableError(f"{source}: line {reader.line_num}: {error}.") from error


def xlsx(source: str, data: bytes, limits: ConversionLimits) -> tuple[list[ImportedPassage], Document | None]:
    """A workbook: the passages of its tables, and its other sheets as a document.

    A sheet is a table if its first row names every column once. Its rows are passages with ids as
    ``prices.xlsx#Sheet1!7``. Another sheet is a section below its name, whose units are its rows. Formulas give
    the value that was saved with them. Dates are ISO 8601.

    Raises:
        UnreadableError: it is no such file, is locked or too large.
    """
    check_zip(source, data, limits)
    book = library("openpyxl").load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
    made: list[ImportedPassage] = []
    outline = Outline()
    cells_left = limits.cells
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # the file's own claim, up to which empty cells would be made up
        grid = []
        for number, row in islice(_grid(sheet), EMPTY_ROWS):
            cells_left -= sum(map(bool, row))
            if cells_left < 0:
                raise UnreadableError(f"{source} has more than {limits.cells:,} cells.")
            grid.append((number, row))
        if columns := _columns(grid):
            made += records.passages(source, _records(columns, grid), "xlsx", sheet=sheet.title)
        elif grid:
            outline.open_heading(2, sheet.title)
            for _, row in grid:
                outline.row(row)
    book.close()
    if not made or outline.blocks:
        return made, outline.document(source, "xlsx")
    return made, None


def _grid(sheet: Any) -> Iterator[tuple[int, list[str]]]:
    """(number, cells) of the rows that have a value."""
    for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
        cells = [_cell_text(value) for value in row]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            yield number, cells


def _columns(grid: Sequence[tuple[int, list[str]]]) -> list[str] | None:
    """The names in the first row, if it names at least two columns, each once, and no row is wider."""
    if len(grid) < 2:
        return None
    names = grid[0][1]
    unique = len({name.casefold() for name in names}) == len(names) >= 2
    return names if all(names) and unique and all(len(row) <= len(names) for _, row in grid) else None


def _records(columns: Sequence[str], grid: Sequence[tuple[int, list[str]]]) -> Iterator[Record]:
    for number, row in grid[1:]:
        yield Record({name: value for name, value in zip(columns, row, strict=False) if value}, number)


def _cell_text(value: object) -> str:  # noqa: PLR0911 - a case each
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case datetime.datetime() if value.time() == datetime.time():
            return value.date().isoformat()
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case float() if math.isfinite(value) and value == int(value) and abs(value) < 1e15:
            return str(int(value))
        case float():
            return f"{value:.12g}"
        case _:
            return " ".join(str(value).split())
