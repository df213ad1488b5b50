"""Files of a data set: lines of JSON, plain or compressed, and relevance labels; each mistake names its line."""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engram.context.errors import EngramError


class DatasetError(EngramError):
    """A data set cannot be read; the message names the file and the line."""

    type = "dataset"
    title = "Unreadable data set"


Line = tuple[str, dict[str, Any]]
"""Where a row stands (file and line) and the row."""


def find(folder: Path, name: str) -> Path | None:
    """The file of this name, plain or with ``.gz``, or None."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def require_file(folder: Path, name: str) -> Path:
    """The file of this name, plain or with ``.gz``.

    Raises:
        DatasetError: there is none.
    """
    path = find(folder, name)
    if path is None:
        raise DatasetError(f"{folder}: there is no {name} or {name}.gz.")
    return path


def _lines(path: Path) -> list[str]:
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            content = gzip.decompress(content)
        return content.decode("utf-8").splitlines()
    except (OSError, EOFError, zlib.error) as error:
        raise DatasetError(f"{path}: {error}") from error
    except UnicodeDecodeError as error:
        raise DatasetError(f"{path}: not UTF-8 at byte {error.start}.") from error


def json_lines(path: Path) -> list[Line]:
    """The objects of a JSONL file; empty lines are skipped.

    Raises:
        DatasetError: the file cannot be read, or a line is no JSON object.
    """
    rows: list[Line] = []
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise DatasetError(f"{where}: not JSON ({error.msg}).") from error
        if not isinstance(row, dict):
            raise DatasetError(f"{where}: not a JSON object.")
        rows.append((where, row))
    return rows


def labels(path: Path) -> list[tuple[str, str, str]]:
    """(where, query id, passage id) of the positive labels: a header, then query id, passage id and score.

    Raises:
        DatasetError: the file cannot be read, or a line is something else.
    """
    return [
        (where, query, passage) for where, query, passage, score in _scored(_tab_separated(path)[1:]) if score > 0
    ]


def grade_lines(path: Path) -> list[tuple[str, str, str, float]]:
    """(where, query id, passage id, grade) of each line, without a header; a grade is at least 1.

    Raises:
        DatasetError: the file cannot be read, or a line is something else.
    """
    graded = _scored(_tab_separated(path))
    for where, *_, grade in graded:
        if grade < 1:
            raise DatasetError(f"{where}: a grade is a number from 1 on, not {grade:g}.")
    return graded


def _tab_separated(path: Path) -> list[tuple[str, list[str]]]:
    """Return each line of a file with where it stands."""
    rows = csv.reader(io.StringIO("\n".join(_lines(path))), delimiter="\t", quoting=csv.QUOTE_NONE)
    return [(f"{path}, line {number}", row) for number, row in enumerate(rows, start=1)]


def _scored(rows: Sequence[tuple[str, list[str]]]) -> list[tuple[str, str, str, float]]:
    """Return (where, query id, passage id, score) of each line that is not empty.

    Raises:
        DatasetError: a line is something else.
    """
    scored = []
    for where, row in rows:
        if not row:
            continue
        try:
            query, passage, score = row
            scored.append((where, query, passage, float(score)))
        except ValueError as error:
            raise DatasetError(f"{where}: expected query id, passage id and score, separated by tabs.") from error
    return scored


def read_text(where: str, row: Mapping[str, Any], name: str) -> str:
    """A field of a row that must be a string with something in it.

    Raises:
        DatasetError: it is not.
    """
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise DatasetError(f"{where}: {name} must be a string that is not empty.")
    return value
