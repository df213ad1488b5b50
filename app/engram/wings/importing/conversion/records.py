"""Passages of records: a row of a table or an object of JSON is a passage."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from engram.core.text.sizes import SENTENCE_CHARACTERS
from engram.providers.language.sentence_splitter import split_sentences
from engram.wings.importing.conversion.chunks import pieces
from engram.wings.importing.conversion.documents import ImportedPassage, UnreadableError

IDS = ("id", "_id", "passage_id", "doc_id")
TITLES = ("title", "name", "heading", "subject")
TEXTS = ("text", "content", "contents", "body", "passage", "document", "abstract", "description")
METADATA_VALUES = 200
METADATA_BYTES = 32 * 1024
"""Of a record with more values only these become metadata: ``POST /passages`` refuses large ones."""


@dataclass(frozen=True)
class Record:
    """A row or an object.

    Attributes:
        values: by the names of its columns, none blank.
        place: what its id is where it has none of its own; also ``metadata``, with ``place_name`` as the key.
    """

    values: Mapping[str, str]
    place: str | int


def passages(
    source: str, records: Iterable[Record], kind: str, *, place_name: str = "row", sheet: str | None = None
) -> Iterator[ImportedPassage]:
    """Yield a passage for each record that has a value besides its id.

    A column called as in ``TEXTS`` is the text, as in ``TITLES`` the title, as in ``IDS`` the id, and all others
    are metadata. If no column is the text, the text names each column with its value, and the first value is the
    title.

    Raises:
        UnreadableError: two records have one id.
    """
    seen: set[str] = set()
    for record in records:
        row = record.values
        by_name = {name.casefold(): name for name in row}
        identifier, title, body = (
            next((by_name[n] for n in names if n in by_name), None) for names in (IDS, TITLES, TEXTS)
        )
        lines = [f"{name}: {value}" for name, value in row.items() if name != identifier]
        if not lines:
            continue
        number = row[identifier] if identifier else str(record.place)
        key = f"{source}#{number}" if sheet is None else f"{source}#{sheet}!{number}"
        if key in seen:
            raise UnreadableError(f"{source}: two rows have the id {number!r}.")
        seen.add(key)
        other_fields = {name: value for name, value in row.items() if name not in (identifier, title, body)}
        place: dict[str, object] = {place_name: record.place}
        if sheet is not None:
            place["sheet"] = sheet
        sentences = split_sentences(row[body]) if body else lines
        yield ImportedPassage(
            id=key,
            title=row[title] if title else "" if body else next(iter(row.values()))[:200],
            text=row[body] if body else "\n".join(lines),
            sentences=tuple(piece for sentence in sentences for piece in pieces(sentence, SENTENCE_CHARACTERS)),
            metadata={"source": source, "format": kind, **place, **_limit_metadata(other_fields)},
        )


def _limit_metadata(values: Mapping[str, str]) -> dict[str, object]:
    bounded: dict[str, object] = {}
    size = 0
    for name, value in list(values.items())[:METADATA_VALUES]:
        size += len(json.dumps({name: value}, ensure_ascii=False).encode("utf-8", "replace"))
        if size > METADATA_BYTES:
            break
        bounded[name] = value
    return bounded
