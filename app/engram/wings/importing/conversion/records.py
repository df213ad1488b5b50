"""Passages of records: a row of a table or an object of JSON is a passage."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from engram.core.text.filters import GREATEST_INTEGER, LEAST_INTEGER
from engram.core.text.sizes import SENTENCE_CHARACTERS
from engram.providers.language.sentence_splitter import split_sentences
from engram.wings.importing.conversion.chunks import pieces
from engram.wings.importing.conversion.documents import Conversion, ImportedPassage
from engram.wings.importing.conversion.notes import list_some
from engram.wings.importing.conversion.outline import drop_encoded, flatten_text, note_encoded
from engram.wings.importing.conversion.table_model import name_values

IDS = ("id", "_id", "passage_id", "doc_id")
TITLES = ("title", "name", "heading", "subject")
TEXTS = ("text", "content", "contents", "body", "passage", "document", "abstract", "description")
METADATA_VALUES = 200
"""Of a record with more values only these become metadata: ``POST /passages`` refuses large ones."""
METADATA_BYTES = 32 * 1024
TITLE_CHARACTERS = 500
ID_CHARACTERS = 512
"""``POST /passages`` refuses longer ids."""
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", re.ASCII)
_MOST_DIGITS = 15
"""Characters of a number that a float holds exactly."""
_SHORT = 200
"""Characters of a value that stands in the sentence of its row; a longer one has sentences of its own."""


@dataclass(frozen=True)
class Record:
    """A row or an object.

    Attributes:
        values: by the names of its columns, none blank.
        place: what its id is where it has none of its own; also ``metadata``, with ``row`` as the key.
        nameless: values that no column names.
        typed: by the names of columns, values for the metadata that are more than text: numbers, booleans, lists.
    """

    values: Mapping[str, str]
    place: int
    nameless: tuple[str, ...] = ()
    typed: Mapping[str, object] = field(default_factory=dict)


def passages(
    source: str,
    records: Iterable[Record],
    kind: str,
    *,
    sheet: str | None = None,
    used_ids: set[str] | None = None,
) -> Conversion:
    """Make a passage of each record.

    A column called as in ``TEXTS`` is the text, as in ``TITLES`` the title, as in ``IDS`` the id, and all others
    are metadata. Below the text stands one sentence that names each other column with its value, the id too, so
    that all of them can be found. If no column is the text, this sentence is the text, and the first value is the
    title. Of two records with one id, the second id ends with its place; for an id of more than ``ID_CHARACTERS``
    its place stands. A title of more than ``TITLE_CHARACTERS`` is cut, and stands whole below the text.

    Args:
        used_ids: ids of other tables of the same file; the ids of these records are added.
    """
    used_ids = set() if used_ids is None else used_ids
    made: list[ImportedPassage] = []
    repeated: list[int] = []
    overlong: list[int] = []
    encoded = 0
    for record in records:
        row: dict[str, str] = {}
        for name, value in record.values.items():
            row[name], count = drop_encoded(value)
            encoded += count
        by_name = {name.casefold(): name for name in row}
        identifier, title, body = (
            next((by_name[n] for n in names if n in by_name), None) for names in (IDS, TITLES, TEXTS)
        )
        key = _key(source, sheet, row[identifier] if identifier else str(record.place))
        if len(key) > ID_CHARACTERS:
            overlong.append(record.place)
            key = _key(source, sheet, str(record.place))
        if key in used_ids:
            repeated.append(record.place)
        while key in used_ids:
            key = f"{key}:{record.place}"
        used_ids.add(key)
        whole_title = title if title and len(row[title]) <= TITLE_CHARACTERS else None
        fields = {name: value for name, value in row.items() if body is None or name not in (whole_title, body)}
        parts = [row[body]] if body else []
        parts += _write_fields(fields, record.nameless)
        other_fields = {
            name: record.typed.get(name, value)
            for name, value in row.items()
            if name not in (identifier, title, body)
        }
        place = {"row": record.place} | ({} if sheet is None else {"sheet": sheet})
        sentences = [*split_sentences(row[body]), *parts[1:]] if body else parts
        heading = row[title] if title else "" if body else _first(row, record.nameless)[:200]
        made.append(
            ImportedPassage(
                id=key,
                title=heading[:TITLE_CHARACTERS],
                text="\n".join(parts),
                sentences=tuple(piece for sentence in sentences for piece in pieces(sentence, SENTENCE_CHARACTERS)),
                metadata={"source": source, "format": kind, **place, **_limit_metadata(other_fields)},
            )
        )
    notes = (
        *_note_ids(source, sheet, repeated, "repeats an id, so its passage is named by its row too"),
        *_note_ids(source, sheet, overlong, "has too long an id, so its passage is named by its row"),
        *note_encoded(source, encoded),
    )
    return Conversion(tuple(made), notes)


def _key(source: str, sheet: str | None, number: str) -> str:
    return f"{source}#{number}" if sheet is None else f"{source}#{sheet}!{number}"


def _first(row: Mapping[str, str], nameless: Sequence[str]) -> str:
    return next(iter([*row.values(), *nameless]), "")


def _write_fields(values: Mapping[str, str], nameless: Sequence[str]) -> list[str]:
    """One sentence of the short values, then each long one below its name."""
    flat = {name: flatten_text(value) for name, value in values.items()}
    short = {name: value for name, value in flat.items() if len(value) <= _SHORT}
    line = name_values([*short, *[""] * len(nameless)], [*short.values(), *map(flatten_text, nameless)])
    long = [
        sentence
        for name, value in flat.items()
        if len(value) > _SHORT
        for sentence in split_sentences(f"{name}: {value}")
    ]
    return [*([line] if line else []), *long]


def _note_ids(source: str, sheet: str | None, places: Sequence[int], what: str) -> tuple[str, ...]:
    where = "" if sheet is None else f" of sheet {sheet}"
    return (f"{source}: row {list_some(places)}{where} {what}",) if places else ()


class WrittenFloat(float):
    """A number with a fraction that keeps how it is written: ``12.50``."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text


def is_number(text: str) -> bool:
    """Whether a text is a number that is written plainly and that metadata hold exactly."""
    return bool(_NUMBER.fullmatch(text)) and len(text) <= _MOST_DIGITS


def read_plain(text: str) -> object:
    """Return the number or boolean that a text is where it is written plainly, else the text."""
    is_plain = text in ("true", "false") or is_number(text)
    return json.loads(text, parse_float=WrittenFloat) if is_plain else text


def keep_type(value: object) -> object | None:
    """Return a number, a boolean, or a list of these and texts, as metadata hold it; None for others."""
    match value:
        case bool():
            return value
        case int():
            return value if LEAST_INTEGER <= value <= GREATEST_INTEGER else None
        case float():
            return float(value) if math.isfinite(value) else None
        case list():
            items = [item if isinstance(item, str) else keep_type(item) for item in value if item is not None]
            return None if any(item is None or isinstance(item, list) for item in items) else items
        case _:
            return None


def _limit_metadata(values: Mapping[str, object]) -> dict[str, object]:
    bounded: dict[str, object] = {}
    size = 0
    for name, value in list(values.items())[:METADATA_VALUES]:
        size += len(json.dumps({name: value}, ensure_ascii=False).encode("utf-8", "replace"))
        if size > METADATA_BYTES:
            break
        bounded[name] = value
    return bounded
