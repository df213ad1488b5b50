"""Tables of the sheets of a workbook, whatever its format."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from engram.wings.importing.conversion import records
from engram.wings.importing.conversion.documents import Conversion, Document, ImportedPassage, UnreadableError
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.notes import list_some
from engram.wings.importing.conversion.outline import Outline, library
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

MOST_COLUMNS = 16_384
"""Of a sheet of Excel and of LibreOffice."""
_CODE = re.compile(r"\D*0\d")
Row = list[Cell | None]


@dataclass
class SheetMarks:
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


class SheetTables:
    """Collects the sheets of a workbook: records of tables, and other sheets as text.

    Attributes:
        notes: on what was left out; more may be added.
    """

    def __init__(self, source: str, kind: str, limits: ConversionLimits) -> None:
        self.notes: list[str] = []
        self._source = source
        self._kind = kind
        self._limits = limits
        self._cells_left = limits.cells
        self._passages: list[ImportedPassage] = []
        self._used_ids: set[str] = set()
        self._outline = Outline()

    def add_sheet(self, title: str, rows: Iterable[tuple[int, Row]], marks: SheetMarks) -> None:
        """Add a sheet by its rows that have a value, each with its number from 1.

        Args:
            marks: complete once the last row was read.

        Raises:
            UnreadableError: the workbook has too many cells.
        """
        kept: dict[int, Row] = {}
        for number, row in rows:
            self._cells_left -= sum(cell is not None for cell in row)
            if self._cells_left < 0:
                raise UnreadableError(f"{self._source} has more than {self._limits.cells:,} cells.")
            kept[number] = row
        self.notes += _note_marks(self._source, title, marks)
        _spread_merged(self._source, kept, marks)
        visible = _drop_hidden(kept, marks)
        numbers = list(visible)
        gaps = {at for at, (before, number) in enumerate(pairwise(numbers), 1) if number > before + 1}
        titled = False
        for one in split_tables(list(visible.values()), gaps):
            table = one.rows
            part, numbers = numbers[: len(table)], numbers[len(table) :]
            names = None if one.is_form else _names(table)
            if names is None:
                if table and not titled:
                    self._outline.open_heading(2, title)
                    titled = True
                self._outline.table(write_table(table, 0 if one.is_form else None))
                continue
            values = [(number, _texts(row)) for number, row in zip(part, table, strict=True)]
            made = (
                replace(record, typed=_find_typed(names, row))
                for record, row in zip(make_records(names, values[1:]), table[1:], strict=True)
            )
            read = records.passages(self._source, made, self._kind, sheet=title, used_ids=self._used_ids)
            self._passages += read.passages
            self.notes += read.notes

    def finish(self, notes: Sequence[str]) -> tuple[Conversion, Document | None]:
        """Return the records, and the text of the other sheets if there is any.

        Raises:
            UnreadableError: there is neither.
        """
        conversion = Conversion(tuple(self._passages), (*self.notes, *notes))
        if not self._outline.blocks and self._passages:
            return conversion, None
        return conversion, self._outline.document(self._source, self._kind)


def _spread_merged(source: str, rows: dict[int, Row], marks: SheetMarks) -> None:
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


def _drop_hidden(rows: dict[int, Row], marks: SheetMarks) -> dict[int, Row]:
    """The rows by their numbers, without hidden rows and columns."""
    hidden = marks.hidden_columns
    visible = (
        (number, [cell for at, cell in enumerate(row, 1) if at not in hidden] if hidden else row)
        for number, row in rows.items()
        if number not in marks.hidden_rows
    )
    return {number: row for number, row in visible if any(row)}


def _note_marks(source: str, title: str, marks: SheetMarks) -> list[str]:
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


def find_value(value: object, text: str) -> float | bool | None:
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
