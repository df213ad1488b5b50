"""Reader of spreadsheets."""

import datetime
import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import Any

from engram.wings.importing.conversion import records
from engram.wings.importing.conversion.documents import Conversion, Document, ImportedPassage, UnreadableError
from engram.wings.importing.conversion.import_limits import EMPTY_ROWS, ConversionLimits, check_zip
from engram.wings.importing.conversion.notes import list_some
from engram.wings.importing.conversion.number_formats import format_elapsed, format_number
from engram.wings.importing.conversion.office import note_unread_parts
from engram.wings.importing.conversion.outline import Outline, flatten_text, library
from engram.wings.importing.conversion.records import keep_type
from engram.wings.importing.conversion.table_model import (
    MOST_PLACES,
    REPEATED_CHARACTERS,
    Cell,
    is_figure,
    split_tables,
    write_table,
)
from engram.wings.importing.conversion.tables import column_names, make_records

_MERGED = re.compile(rb'<(?:\w+:)?mergeCell\s[^>]*?ref="([A-Z]+)(\d+):([A-Z]+)(\d+)"')
_HIDDEN_ROW = re.compile(rb'<(?:\w+:)?row\s(?=[^>]*?\shidden="(?:1|true)")[^>]*?\br="(\d+)"')
_BOUND = re.compile(rb'\b(min|max)="(\d+)"')
_HIDDEN_COLUMN = re.compile(rb'<(?:\w+:)?col\s(?=[^>]*?\bhidden="(?:1|true)")[^>]*>')
_UNSAVED = re.compile(
    rb'<(?:\w+:)?c\s[^>]*?\br="([A-Z]+\d+)"[^>]*>\s*<(?:\w+:)?f(?:\s[^>]*)?(?:/>|>[^<]*</(?:\w+:)?f>)'
    rb"\s*(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v></(?:\w+:)?v>)?\s*</(?:\w+:)?c>"
)
_MOST_COLUMNS = 16_384
_CODE = re.compile(r"\D*0\d")
Row = list[Cell | None]


@dataclass
class _Marks:
    """The marks of a sheet beside its cells.

    Attributes:
        merged: (first row, first column, last row, last column) of ranges, from 1.
        hidden_rows: numbers from 1.
        hidden_columns: numbers from 1.
        unsaved: places of formulas without a saved value.
    """

    merged: list[tuple[int, int, int, int]] = field(default_factory=list)
    hidden_rows: set[int] = field(default_factory=set)
    hidden_columns: set[int] = field(default_factory=set)
    unsaved: list[str] = field(default_factory=list)


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
    made: list[ImportedPassage] = []
    used_ids: set[str] = set()
    notes: list[str] = []
    outline = Outline()
    cells_left = limits.cells
    for sheet in book.worksheets:
        if sheet.sheet_state != "visible":
            notes.append(f"{source}: left out the hidden sheet {sheet.title}")
            continue
        marks = _read_marks(data, sheet)
        notes += _note_marks(source, sheet.title, marks)
        sheet.reset_dimensions()  # the file's own claim, up to which empty cells would be made up
        rows: dict[int, Row] = {}
        for number, row in islice(_rows(sheet), EMPTY_ROWS):
            cells_left -= sum(cell is not None for cell in row)
            if cells_left < 0:
                raise UnreadableError(f"{source} has more than {limits.cells:,} cells.")
            rows[number] = row
        _spread_merged(source, rows, marks)
        visible = _drop_hidden(rows, marks)
        numbers = list(visible)
        gaps = {at for at, (before, number) in enumerate(pairwise(numbers), 1) if number > before + 1}
        titled = False
        for table in split_tables(list(visible.values()), gaps):
            part, numbers = numbers[: len(table)], numbers[len(table) :]
            names = _names(table)
            if names is None:
                if table and not titled:
                    outline.open_heading(2, sheet.title)
                    titled = True
                outline.table(write_table(table))
                continue
            values = [(number, _texts(row)) for number, row in zip(part, table, strict=True)]
            rows_below = (
                replace(record, typed=_find_typed(names, row))
                for record, row in zip(make_records(names, values[1:]), table[1:], strict=True)
            )
            converted = records.passages(source, rows_below, "xlsx", sheet=sheet.title, used_ids=used_ids)
            made += converted.passages
            notes += converted.notes
    book.close()
    tables = Conversion(tuple(made), (*notes, *note_unread_parts(source, data)))
    return tables, outline.document(source, "xlsx") if outline.blocks or not made else None


def _rows(sheet: Any) -> Iterator[tuple[int, Row]]:
    """(number, cells) of the rows that have a value."""
    for number, row in enumerate(sheet.iter_rows(), 1):
        cells: Row = [_cell(cell) if cell.value is not None else None for cell in row]
        while cells and cells[-1] is None:
            cells.pop()
        if cells:
            yield number, cells


def _spread_merged(source: str, rows: dict[int, Row], marks: _Marks) -> None:
    """Put each merged cell into every place that it covers, as far as the sheet has values.

    Raises:
        UnreadableError: there are more such places than a table may have.
    """
    width = max(map(len, rows.values()), default=0)
    places = 0
    for top, left, bottom, right in marks.merged:
        begin = rows.get(top, [])
        cell = begin[left - 1] if left <= len(begin) else None
        if cell is None or len(cell.text) > REPEATED_CHARACTERS:
            continue
        last = min(right, width)
        covered = range(top, bottom + 1) if bottom - top < len(rows) else [n for n in rows if top <= n <= bottom]
        places += len(covered) * (last - left + 1)
        if places > MOST_PLACES:
            raise UnreadableError(f"{source} has merged cells of more than {MOST_PLACES:,} cells.")
        for row in (rows[number] for number in covered if number in rows):
            row.extend([None] * (last - len(row)))
            row[left - 1 : last] = [cell] * (last - left + 1)


def _names(table: list[Row]) -> list[str] | None:
    """The names of the columns if each row of a table is a record; None for other tables, and for forms.

    A form has two columns whose second one holds figures and words, and none named as ids and texts are.
    """
    names = column_names(_texts(table[0])) if len(table) > 1 else None
    if names is None or len(names) < 2 or any(len(row) > len(names) for row in table):
        return None
    values = [text for row in table[1:] for text in _texts(row)[1:] if text]
    known = {name.casefold() for name in names} & {*records.IDS, *records.TEXTS}
    form = len(names) == 2 and not known and 0 < sum(map(is_figure, values)) < len(values)
    return None if form else names


def _texts(row: Row) -> list[str]:
    return [cell.text if cell else "" for cell in row]


def _drop_hidden(rows: dict[int, Row], marks: _Marks) -> dict[int, Row]:
    """The rows by their numbers, without hidden rows and columns."""
    hidden = marks.hidden_columns
    visible = (
        (number, [cell for at, cell in enumerate(row, 1) if at not in hidden] if hidden else row)
        for number, row in rows.items()
        if number not in marks.hidden_rows
    )
    return {number: row for number, row in visible if any(row)}


def _read_marks(data: bytes, sheet: Any) -> _Marks:
    """Read what openpyxl does not tell of a sheet that it reads row by row."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        xml = archive.read(sheet._worksheet_path)  # noqa: SLF001 - openpyxl has no public name
    marks = _Marks()
    if b"mergeCell" in xml:
        marks.merged = [
            (int(top), _column(left), int(bottom), _column(right))
            for left, top, right, bottom in _MERGED.findall(xml)
        ]
    if b"hidden=" in xml:
        marks.hidden_rows = {int(number) for number in _HIDDEN_ROW.findall(xml)}
        for column in _HIDDEN_COLUMN.findall(xml):
            bound = {name: int(number) for name, number in _BOUND.findall(column)}
            marks.hidden_columns.update(range(bound[b"min"], min(bound[b"max"], _MOST_COLUMNS) + 1))
    if re.search(rb"<(?:\w+:)?f[\s>/]", xml):
        marks.unsaved = [place.decode() for place in _UNSAVED.findall(xml)]
    return marks


def _note_marks(source: str, title: str, marks: _Marks) -> list[str]:
    """Say which hidden rows and columns, and which formulas, are left out of a sheet."""
    letters = library("openpyxl.utils").get_column_letter
    names = {
        "hidden rows": [str(number) for number in sorted(marks.hidden_rows)],
        "hidden columns": [letters(number) for number in sorted(marks.hidden_columns)],
        "formulas without a saved value": marks.unsaved,
    }
    return [
        f"{source}: left out {name} of sheet {title}: {list_some(places)}"
        for name, places in names.items()
        if places
    ]


def _column(letters: bytes) -> int:
    return int(library("openpyxl.utils").column_index_from_string(letters.decode()))


def _cell(cell: Any) -> Cell | None:
    text = _write_value(cell.value, cell.number_format)
    return Cell(text, strong=bool(cell.font and cell.font.b), value=_find_value(cell.value, text)) if text else None


def _find_value(value: object, text: str) -> float | bool | None:
    """The boolean or number of a cell, as far as its file is exact; None for others and for codes such as 00123."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, int | float) or _CODE.match(text):
        return None
    exact = float(f"{value:.15g}")
    return value if isinstance(value, int) else int(exact) if exact.is_integer() and abs(exact) < 1e15 else exact


def _find_typed(names: Sequence[str], row: Row) -> dict[str, object]:
    typed = ((name, keep_type(cell.value)) for name, cell in zip(names, row, strict=False) if cell)
    return {name: value for name, value in typed if value is not None}


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
