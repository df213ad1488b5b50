"""Reader of OpenDocument spreadsheets."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from engram.wings.importing.conversion.documents import Conversion, Document
from engram.wings.importing.conversion.import_limits import EMPTY_ROWS, ConversionLimits
from engram.wings.importing.conversion.open_documents import (
    OFFICE,
    TABLE,
    TEXT,
    OpenFile,
    is_bold,
    list_rows,
    open_file,
)
from engram.wings.importing.conversion.outline import flatten_text
from engram.wings.importing.conversion.sheet_tables import MOST_COLUMNS, Row, SheetMarks, SheetTables, find_value
from engram.wings.importing.conversion.table_model import Cell

_HIDDEN = ("collapse", "filter")


def ods(source: str, data: bytes, limits: ConversionLimits) -> tuple[Conversion, Document | None]:
    """A workbook: the passages of its tables, and its other sheets as a document, see ``sheets.xlsx``.

    Raises:
        UnreadableError: it is no such file, is locked or too large.
    """
    file = open_file(source, data, limits)
    tables = SheetTables(source, "ods", limits)
    for sheet in file.body.findall(f"{TABLE}table"):
        title = str(sheet.get(f"{TABLE}name"))
        if file.find_property(sheet.get(f"{TABLE}style-name"), f"{TABLE}display") == "false":
            tables.notes.append(f"{source}: left out the hidden sheet {title}")
            continue
        marks = SheetMarks(hidden_columns=_find_hidden_columns(sheet))
        tables.add_sheet(title, islice(_read_rows(file, sheet, marks, limits), EMPTY_ROWS), marks)
    return tables.finish(file.notes)


def _read_rows(
    file: OpenFile, sheet: Any, marks: SheetMarks, limits: ConversionLimits
) -> Iterator[tuple[int, Row]]:
    """Yield (number, cells) of the rows that have a value, and add marks of the sheet."""
    number = 0
    for row in list_rows(sheet):
        repeated = int(row.get(f"{TABLE}number-rows-repeated") or 1)
        cells = _read_row(file, row, number + 1, marks, limits)
        hidden = row.get(f"{TABLE}visibility") in _HIDDEN
        for at in range(number + 1, number + 1 + (repeated if cells else 0)):
            if hidden:
                marks.hidden_rows.add(at)
            yield at, list(cells)
        number += repeated


def _read_row(file: OpenFile, row: Any, number: int, marks: SheetMarks, limits: ConversionLimits) -> Row:
    cells: Row = []
    for cell in row.iterchildren(f"{TABLE}table-cell", f"{TABLE}covered-table-cell"):
        repeated = int(cell.get(f"{TABLE}number-columns-repeated") or 1)
        read = None if cell.tag == f"{TABLE}covered-table-cell" else _read_cell(file, cell)
        if read is not None:
            columns, rows = (int(cell.get(f"{TABLE}number-{name}-spanned") or 1) for name in ("columns", "rows"))
            if columns > 1 or rows > 1:
                first_column = len(cells) + 1
                marks.merged.append((number, first_column, number + rows - 1, first_column + columns - 1))
        cells += [read] * min(repeated, MOST_COLUMNS - len(cells), limits.cells)
    while cells and cells[-1] is None:
        cells.pop()
    return cells


def _read_cell(file: OpenFile, cell: Any) -> Cell | None:
    kind = cell.get(f"{OFFICE}value-type")
    lines = ("".join(_list_shown(line)) for line in cell.iterchildren(f"{TEXT}p"))
    text = flatten_text(" ".join(lines))
    value: object = None
    if kind == "date":
        text = str(cell.get(f"{OFFICE}date-value") or text).removesuffix("T00:00:00")
    elif kind == "boolean":
        value = cell.get(f"{OFFICE}boolean-value") == "true"
        text = str(value).upper()
    elif kind in ("float", "percentage", "currency"):
        value = text == "TRUE" if text in ("TRUE", "FALSE") else float(cell.get(f"{OFFICE}value") or "nan")
    style = cell.get(f"{TABLE}style-name")
    return Cell(text, strong=is_bold(file, style), value=find_value(value, text)) if text else None


def _list_shown(line: Any) -> Iterator[str]:
    """Yield the pieces of a line of a cell; a tab and a run of spaces are a space."""
    for node in line.iter():
        if node is not line and node.tag in (f"{TEXT}s", f"{TEXT}tab", f"{TEXT}line-break"):
            yield " "
        yield node.text or ""
        if node is not line:
            yield node.tail or ""


def _find_hidden_columns(sheet: Any) -> set[int]:
    hidden: set[int] = set()
    number = 0
    for column in sheet.iter(f"{TABLE}table-column"):
        repeated = int(column.get(f"{TABLE}number-columns-repeated") or 1)
        if column.get(f"{TABLE}visibility") in _HIDDEN:
            hidden.update(range(number + 1, min(number + repeated, MOST_COLUMNS) + 1))
        number += repeated
    return hidden
