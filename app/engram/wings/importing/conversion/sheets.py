"""Reader of spreadsheets."""

import datetime
import io
import re
import zipfile
from collections.abc import Iterator
from itertools import islice
from typing import Any

from engram.wings.importing.conversion.documents import Conversion, Document
from engram.wings.importing.conversion.import_limits import EMPTY_ROWS, ConversionLimits, check_zip
from engram.wings.importing.conversion.number_formats import format_elapsed, format_number
from engram.wings.importing.conversion.office import note_unread_parts
from engram.wings.importing.conversion.outline import flatten_text, library
from engram.wings.importing.conversion.sheet_tables import MOST_COLUMNS, Row, SheetMarks, SheetTables, find_value
from engram.wings.importing.conversion.symbol_fonts import read_signs
from engram.wings.importing.conversion.table_model import Cell

_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*?ref="([A-Z]+)(\d+):([A-Z]+)(\d+)"')
_HIDDEN_ROW = re.compile(rb'<(?:\w+:)?row\s(?=[^>]*?\shidden="(?:1|true)")[^>]*?\br="(\d+)"')
_BOUND = re.compile(rb'\b(min|max)="(\d+)"')
_HIDDEN_COLUMN = re.compile(rb'<(?:\w+:)?col\s(?=[^>]*?\bhidden="(?:1|true)")[^>]*>')
_UNSAVED = re.compile(
    rb'<(?:\w+:)?c\s[^>]*?\br="([A-Z]+\d+)"[^>]*>\s*<(?:\w+:)?f(?:\s[^>]*)?(?:/>|>[^<]*</(?:\w+:)?f>)'
    rb"\s*(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v></(?:\w+:)?v>)?\s*</(?:\w+:)?c>"
)


def xlsx(source: str, data: bytes, limits: ConversionLimits) -> tuple[Conversion, Document | None]:
    """A workbook: the passages of its tables, and its other sheets as a document.

    A sheet is a table if its first row names every column once. Its rows are passages with ids as
    ``prices.xlsx#Sheet1!7``. Another sheet is a section below its name, whose units are its rows. Formulas give
    the value that was saved with them. Numbers are as their formats show them; dates are ISO 8601. A merged cell
    stands in every place that it covers. Hidden sheets, rows and columns are left out; notes name them.

    Raises:
        UnreadableError: it is no such file, is locked or too large.
    """
    check_zip(source, data, limits)
    book = library("openpyxl").load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
    tables = SheetTables(source, "xlsx", limits)
    for sheet in book.worksheets:
        if sheet.sheet_state != "visible":
            tables.notes.append(f"{source}: left out the hidden sheet {sheet.title}")
            continue
        marks = _read_marks(data, sheet)
        sheet.reset_dimensions()  # the file's own claim, up to which empty cells would be made up
        tables.add_sheet(sheet.title, islice(_rows(sheet), EMPTY_ROWS), marks)
    book.close()
    return tables.finish(note_unread_parts(source, data))


def _rows(sheet: Any) -> Iterator[tuple[int, Row]]:
    """(number, cells) of the rows that have a value."""
    for number, row in enumerate(sheet.iter_rows(), 1):
        cells: Row = [_cell(cell) if cell.value is not None else None for cell in row]
        while cells and cells[-1] is None:
            cells.pop()
        if cells:
            yield number, cells


def _read_marks(data: bytes, sheet: Any) -> SheetMarks:
    """Read what openpyxl does not tell of a sheet that it reads row by row."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        xml = archive.read(sheet._worksheet_path)  # noqa: SLF001 - openpyxl has no public name
    marks = SheetMarks()
    if b"mergeCell" in xml:
        marks.merged = [
            (int(top), _column(left), int(bottom), _column(right))
            for left, top, right, bottom in _MERGED.findall(xml)
        ]
    if b"hidden=" in xml:
        marks.hidden_rows = {int(number) for number in _HIDDEN_ROW.findall(xml)}
        for column in _HIDDEN_COLUMN.findall(xml):
            bound = {name: int(number) for name, number in _BOUND.findall(column)}
            marks.hidden_columns.update(range(bound[b"min"], min(bound[b"max"], MOST_COLUMNS) + 1))
    if re.search(rb"<(?:\w+:)?f[\s>/]", xml):
        marks.unsaved = [place.decode() for place in _UNSAVED.findall(xml)]
    return marks


def _column(letters: bytes) -> int:
    return int(library("openpyxl.utils").column_index_from_string(letters.decode()))


def _cell(cell: Any) -> Cell | None:
    text = _write_value(cell.value, cell.number_format)
    if isinstance(cell.value, str) and cell.font:
        text = read_signs(text, cell.font.name)
    return Cell(text, strong=bool(cell.font and cell.font.b), value=find_value(cell.value, text)) if text else None


def _write_value(value: object, code: str) -> str:
    match value:
        case bool():
            return str(value).upper()
        case datetime.datetime() if value.time() == datetime.time():
            return value.date().isoformat()
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case datetime.timedelta():
            return format_elapsed(value, code)
        case int() | float():
            return format_number(value, code)
        case _:
            return flatten_text(str(value))
