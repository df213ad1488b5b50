"""Reader of CSV and TSV."""

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from engram.wings.importing.conversion import records
from engram.wings.importing.conversion.documents import Conversion, Document, UnreadableError
from engram.wings.importing.conversion.encodings import decode_text
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.notes import list_some
from engram.wings.importing.conversion.outline import Outline, flatten_text
from engram.wings.importing.conversion.records import Record, is_number
from engram.wings.importing.conversion.table_model import Cell, write_table

DELIMITERS = ",;\t|"
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\n', re.IGNORECASE)
_NO_DELIMITER = "\x1f"
_SAMPLE_ROWS = 100
Row = list[str]


def table(source: str, data: bytes, limits: ConversionLimits) -> Conversion | Document:
    """CSV or TSV: a row is a passage, see ``records.passages``. Without names of columns it is text.

    A row with more values than there are columns is written without their names, and a note names its line.

    Raises:
        UnreadableError: it has too many cells, or no text.
    """
    decoded = decode_text(source, data)
    lines, rows = [], []
    for line, row in read_rows(source, decoded.text, limits):
        lines.append(line)
        rows.append(row)
    names = column_names(rows[0]) if rows else None
    wide = [line for line, row in zip(lines, rows, strict=True) if names is not None and len(row) > len(names)]
    if names is None or len(wide) * 2 > len(rows):
        outline = Outline()
        outline.table(write_table([[Cell(flatten_text(value)) for value in row] for row in _align(rows)]))
        return outline.document(source, "csv", decoded.notes)
    made = _type_columns(make_records(names, enumerate(rows[1:], 1)))
    converted = records.passages(source, made, "csv")
    if not converted.passages:
        raise UnreadableError(f"{source} has no text.")
    used = {name for record in made for name in record.values}
    bare = [name for name in names if name not in used]
    notes = (*decoded.notes, *_note_wide(source, wide), *_note_bare(source, bare), *converted.notes)
    return Conversion(converted.passages, notes)


def read_rows(source: str, text: str, limits: ConversionLimits) -> Iterator[tuple[int, Row]]:
    """Yield (line, values) of the rows that have a value, without the empty values at their ends.

    Raises:
        UnreadableError: the table has too many cells, or a quote that nothing closes.
    """
    delimiter = None
    if separator := _SEPARATOR_LINE.match(text):
        delimiter, text = separator[1], text[separator.end() :]
    csv.field_size_limit(limits.file_bytes)
    dialect = _choose_dialect(text, delimiter)
    cells = 0
    for line, row in _read_lines(source, text, dialect):
        values = [value.strip() for value in row]
        while values and not values[-1]:
            values.pop()
        cells += len(values) - values.count("")
        if cells > limits.cells:
            raise UnreadableError(f"{source} has more than {limits.cells:,} cells.")
        if values:
            yield line + (separator is not None), values


def _read_lines(source: str, text: str, dialect: dict[str, Any]) -> Iterator[tuple[int, Row]]:
    """Yield (line, values) of the rows. A quote that nothing closes is text, and does not swallow the rest."""
    reader = csv.reader(io.StringIO(text, newline=""), **dialect)
    begin = 1
    lines = text.split("\n") if text.count('"') % 2 else []  # quotes that all close are of an even number
    try:
        for row in reader:
            at_end = begin < reader.line_num >= len(lines) - 1
            if lines and at_end and any("\n" in value for value in row):
                following = lines[begin - 1 :]
                if _is_open(following, dialect):
                    plain = csv.reader(following, **dialect | {"quoting": csv.QUOTE_NONE})
                    yield from enumerate(plain, begin)
                    return
            yield begin, row
            begin = reader.line_num + 1
    except csv.Error as error:
        raise UnreadableError(f"{source}: line {begin}: {error}.") from error


def _is_open(lines: Sequence[str], dialect: dict[str, Any]) -> bool:
    """Whether a quote in these lines is not closed at their end."""
    try:
        list(csv.reader((f"{line}\n" for line in lines), strict=True, **dialect))
    except csv.Error as error:
        return "unexpected end" in str(error)
    return False


def column_names(first: Row) -> Row | None:
    """The names in the first row, if it names every column once and not by a figure."""
    names = [flatten_text(name) for name in first]
    unique = len({name.casefold() for name in names}) == len(names)
    return names if all(names) and unique and any(map(str.isalpha, "".join(names))) else None


def make_records(names: Sequence[str], rows: Iterable[tuple[int, Row]]) -> Iterator[Record]:
    """Yield the rows below the names; of one that is too wide the values have no names."""
    for number, row in rows:
        if len(row) > len(names):
            yield Record({}, number, tuple(row))
        else:
            yield Record({name: value for name, value in zip(names, row, strict=False) if value}, number)


def _type_columns(records: Iterable[Record]) -> list[Record]:
    """The records with the values of columns as numbers that hold plain numbers alone."""
    records = list(records)
    words = {name for record in records for name, value in record.values.items() if not is_number(value)}
    return [
        replace(
            record, typed={name: json.loads(value) for name, value in record.values.items() if name not in words}
        )
        for record in records
    ]


def _choose_dialect(text: str, delimiter: str | None) -> dict[str, Any]:
    """The delimiter that cuts the first rows most evenly, and a backslash before quotes where it fits better."""
    plain = [{"delimiter": one, "skipinitialspace": True} for one in ([delimiter] if delimiter else DELIMITERS)]
    best = max(plain, key=lambda dialect: _fit(text, dialect))
    if not delimiter and _fit(text, best)[2] < 2:
        return best | {"delimiter": _NO_DELIMITER}
    if '\\"' in text:
        escaped = best | {"escapechar": "\\", "doublequote": '""' in text}
        return max(best, escaped, key=lambda dialect: _fit(text, dialect, None))
    return best


def _fit(text: str, dialect: dict[str, Any], rows: int | None = _SAMPLE_ROWS) -> tuple[bool, float, int]:
    """Measure how a dialect cuts a table: whether it cuts the first row, the share of rows as wide, their width.

    The first rows may be titles of one column. The width is 1 if the dialect cuts nothing.
    """
    try:
        read = csv.reader(io.StringIO(text, newline=""), **dialect)
        widths = [width for width in map(_width, islice(read, rows)) if width]
    except csv.Error:
        return False, 0.0, 1
    titled = len(widths) > 1 and widths[0] < 2
    while len(widths) > 2 and widths[0] < 2 and len(set(widths[-2:])) == 1 < widths[-1]:
        widths.pop(0)
    if not widths or widths[0] < 2:
        return False, 0.0, 1
    return not titled, sum(1 < width <= widths[0] for width in widths[1:]) / len(widths), widths[0]


def _width(row: Row) -> int:
    return max((at for at, value in enumerate(row, 1) if value.strip()), default=0)


def _align(rows: list[Row]) -> list[Row]:
    """The rows; where all others have one value more than the first, they begin with their own names."""
    if len(rows) > 1 and {len(row) - len(rows[0]) for row in rows[1:]} == {1}:
        return [["", *rows[0]], *rows[1:]]
    return rows


def _note_bare(source: str, names: Sequence[str]) -> tuple[str, ...]:
    return (f"{source}: columns without values were left out: {list_some(names)}",) if names else ()


def _note_wide(source: str, lines: Sequence[int]) -> tuple[str, ...]:
    if not lines:
        return ()
    note = "has more values than there are columns: written without their names"
    return (f"{source}: line {list_some(lines)} {note}",)
