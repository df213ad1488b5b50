"""Reader of JSON: a list of objects is records, another value a document."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from engram.wings.importing.conversion import records
from engram.wings.importing.conversion.documents import Conversion, Document, UnreadableError
from engram.wings.importing.conversion.encodings import decode_text
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.notes import list_some
from engram.wings.importing.conversion.outline import Outline, flatten_text
from engram.wings.importing.conversion.records import TEXTS, TITLES, Record, WrittenFloat, keep_type
from engram.wings.importing.conversion.table_model import name_values

DEPTH = 50
"""Levels of a JSON value."""
_PROSE = 80
"""A longer text is prose below its key as a heading; a shorter one is a line "key: value"."""


def parse_json(source: str, data: bytes, limits: ConversionLimits) -> Conversion | Document:
    """Convert JSON, or a JSON value a line (NDJSON).

    Objects of a list, of lines, or of a list called ``passages`` are records, see ``records.passages``; their
    inner values go by names like ``author.name``. Anything else is a document: keys are headings, and an object of
    a list whose values are all short is one sentence. A line that is no JSON among others that are is named in a
    note.

    Raises:
        UnreadableError: it is no JSON, is nested too deeply, or has too many values.
    """
    decoded = decode_text(source, data)
    value, broken = _value(source, decoded.text)
    return convert_value(source, value, "json", limits, (*decoded.notes, *broken))


def convert_value(
    source: str, value: Any, kind: str, limits: ConversionLimits, notes: Sequence[str]
) -> Conversion | Document:
    """Convert a value of JSON, or of a format with the same values, see ``parse_json``.

    Raises:
        UnreadableError: it is nested too deeply, has too many values, or has no text.
    """
    _check(source, value, limits)
    notes = tuple(notes)
    if isinstance(value, dict) and isinstance(value.get("passages"), list):
        beside = [key for key, inner in value.items() if key != "passages" and inner not in (None, "", [], {})]
        notes += (f"{source}: left out what stands beside passages: {', '.join(beside)}",) if beside else ()
        value = value["passages"]
    if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        listed = (_make_record(item, number) for number, item in enumerate(value, 1))
        converted = records.passages(source, listed, kind)
        if not converted.passages:
            raise UnreadableError(f"{source} has no text.")
        return Conversion(converted.passages, (*notes, *converted.notes))
    title = _title(value)
    outline = Outline(title)
    _add(value, outline, 1, title)
    return outline.document(source, kind, notes)


def _value(source: str, text: str) -> tuple[Any, tuple[str, ...]]:
    """Read JSON, or a JSON value a line as a list, with a note on lines that are none.

    Raises:
        UnreadableError: it is neither, or is nested too deeply.
    """
    try:
        return json.loads(text, parse_float=WrittenFloat), ()
    except RecursionError:
        raise UnreadableError(f"{source} nests more than {DEPTH} levels.") from None
    except ValueError as whole:
        lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        if len(lines) < 2:
            raise UnreadableError(f"{source} is no JSON: {whole}.") from whole
        values, broken = _read_lines(source, lines)
        if len(broken) > len(values):
            raise UnreadableError(f"{source} is neither JSON nor a JSON value a line: {whole}.") from whole
        return values, (f"{source}: left out line {list_some(broken)}, which is no JSON",) if broken else ()


def _read_lines(source: str, lines: Sequence[tuple[int, str]]) -> tuple[list[Any], list[int]]:
    """The values of the lines, and the numbers of those that are none.

    Raises:
        UnreadableError: one is nested too deeply.
    """
    values: list[Any] = []
    broken: list[int] = []
    for number, line in lines:
        try:
            values.append(json.loads(line, parse_float=WrittenFloat))
        except RecursionError:
            raise UnreadableError(f"{source} nests more than {DEPTH} levels.") from None
        except ValueError:
            broken.append(number)
    return values, broken


def _check(source: str, value: Any, limits: ConversionLimits) -> None:
    """Refuse a value that is nested too deeply or holds too many values.

    Raises:
        UnreadableError: it does.
    """
    waiting, value_count = [(value, 1)], 0
    while waiting:
        item, depth = waiting.pop()
        value_count += 1
        if depth > DEPTH:
            raise UnreadableError(f"{source} nests more than {DEPTH} levels.")
        if value_count > limits.cells:
            raise UnreadableError(f"{source} has more than {limits.cells:,} values.")
        if isinstance(item, dict | list):
            waiting += [(inner, depth + 1) for inner in (item.values() if isinstance(item, dict) else item)]


def _make_record(item: dict[str, Any], number: int) -> Record:
    """The record of an object; what its ``metadata`` holds goes by its own names, as in ``POST /passages``."""
    held = item.get("metadata")
    if isinstance(held, dict) and not held.keys() & item.keys():
        item = {name: value for name, value in item.items() if name != "metadata"} | held
    leaves: dict[str, list[Any]] = defaultdict(list)
    for name, value in _leaves("", item):
        leaves[name].append(value)
    typed = {name: keep_type(values[0]) for name, values in leaves.items() if len(values) == 1}
    return Record(_join(leaves), number, typed={name: value for name, value in typed.items() if value is not None})


def _fields(item: Any) -> dict[str, str]:
    """The texts of the values inside by their dotted names; those of one name ("a.b", "b" in "a") are joined."""
    leaves: dict[str, list[Any]] = defaultdict(list)
    for name, value in _leaves("", item):
        leaves[name].append(value)
    return _join(leaves)


def _join(leaves: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    return {name: ", ".join(map(_format_value, values)) for name, values in leaves.items()}


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield (dotted name, value) of the values inside that have text; a list of plain values is one."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(f"{name}.{key}" if name else str(key), inner)
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for number, inner in enumerate(value, 1):
            yield from _leaves(f"{name}.{number}", inner)
    elif _format_value(value):
        yield name, value


def _format_value(value: Any) -> str:
    """Return a plain value, or a list of plain values, as text."""
    if isinstance(value, list):
        return ", ".join(filter(None, map(_format_value, value)))
    if value is None or isinstance(value, str):
        return (value or "").strip()
    return str(value) if isinstance(value, WrittenFloat) else json.dumps(value)


def _title(value: Any) -> str | None:
    """Return the text by which an object calls itself, see ``TITLES``; None for other values."""
    if not isinstance(value, dict):
        return None
    return next((item for key, item in value.items() if key.casefold() in TITLES and isinstance(item, str)), None)


def _add(value: Any, outline: Outline, level: int, heading: str | None) -> None:
    """Add a JSON value below the heading of ``level``; nested values open headings of ``level + 1``.

    Args:
        heading: text of the heading above; a title that is this text is not said again.
    """
    if isinstance(value, dict):
        for key, inner in value.items():
            if not (key.casefold() in TITLES and inner == heading):
                _add_member(str(key), inner, outline, level)
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for number, inner in enumerate(value, 1):
            item_heading = _title(inner) or str(number)
            outline.open_heading(level + 1, item_heading)
            if fields := _short_fields(inner, item_heading):
                outline.add(name_values(list(fields), list(fields.values())), whole=True)
            else:
                _add(inner, outline, level + 1, item_heading)
    else:
        _add_text(value if isinstance(value, str) else _format_value(value), outline)


def _short_fields(item: Any, heading: str) -> dict[str, str]:
    """The fields of an object that is like a row: all of them short, and none its text; else none."""
    if not isinstance(item, dict):
        return {}
    fields = {name: flatten_text(text) for name, text in _fields(item).items()}
    if any(len(text) > _PROSE for text in fields.values()) or any(name.casefold() in TEXTS for name in fields):
        return {}
    return {name: text for name, text in fields.items() if not (name.casefold() in TITLES and text == heading)}


def _add_member(key: str, inner: Any, outline: Outline, level: int) -> None:
    """Add a member of an object: a text as it is, a long or nested value below its key, another as "key: value"."""
    nested = isinstance(inner, dict) or (isinstance(inner, list) and _is_long(inner))
    if key.casefold() in TEXTS and isinstance(inner, str):
        _add_text(inner, outline)
    elif nested or (isinstance(inner, str) and len(inner) > _PROSE):
        outline.open_heading(level + 1, key)
        _add(inner, outline, level + 1, key)
        outline.close(level + 1)
    elif text := _format_value(inner):
        outline.add(f"{key}: {flatten_text(text)}", whole=True)


def _is_long(items: Sequence[Any]) -> bool:
    return any(isinstance(item, dict | list) for item in items) or len(_format_value(list(items))) > _PROSE


def _add_text(text: str, outline: Outline) -> None:
    for part in text.split("\n\n"):
        outline.add(flatten_text(part))
