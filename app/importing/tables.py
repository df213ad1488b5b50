"""Tables of CSV: a row is a passage."""

import csv
import io
from collections.abc import Iterator, Mapping

from app.importing.documents import Passage, UnreadableError
from app.providers.language.sentences import split_sentences

IDS = ("id", "_id", "passage_id", "doc_id")
TITLES = ("title", "name", "heading", "subject")
TEXTS = ("text", "content", "contents", "body", "passage", "document", "abstract", "description")
DELIMITERS = ",;\t|"


def rows(source: str, text: str) -> Iterator[Mapping[str, str]]:
    """The rows of a table whose first line names the columns.

    Raises:
        UnreadableError: there is no such line, it names a column twice, or a row has more values than columns.
    """
    try:
        dialect: type[csv.Dialect] | csv.Dialect = csv.Sniffer().sniff(text[:20_000], DELIMITERS)
    except csv.Error:
        dialect = csv.excel  # one column, or so little that nothing tells
    reader = csv.DictReader(io.StringIO(text, newline=""), dialect=dialect)
    columns = [name.strip() for name in reader.fieldnames or ()]
    if not columns or len({name.casefold() for name in columns}) < len(columns):
        raise UnreadableError(f"{source}: the first line does not name columns, each once.")
    reader.fieldnames = columns
    try:
        for row in reader:
            if None in row:
                raise UnreadableError(f"{source}: line {reader.line_num} has more values than there are columns.")
            yield {name: value.strip() for name, value in row.items() if value and value.strip()}
    except csv.Error as error:
        raise UnreadableError(f"{source}: line {reader.line_num}: {error}.") from error


def passages(source: str, text: str) -> Iterator[Passage]:
    """A passage for each row that says something.

    A column called as in ``TEXTS`` is its text, as in ``TITLES`` its title, as in ``IDS`` its id, and all others
    are metadata. Where no column is the text, the text says each column with its value, and the first value is the
    title.

    Raises:
        UnreadableError: as ``rows``, or two rows have one id.
    """
    seen: set[str] = set()
    for number, row in enumerate(rows(source, text), 1):
        by_name = {name.casefold(): name for name in row}
        identifier, title, body = (
            next((by_name[n] for n in names if n in by_name), None) for names in (IDS, TITLES, TEXTS)
        )
        said = [f"{name}: {value}" for name, value in row.items() if name != identifier]
        if not said:
            continue
        key = f"{source}#{row[identifier] if identifier else number}"
        if key in seen:
            raise UnreadableError(f"{source}: two rows have the id {key.rpartition('#')[2]!r}.")
        seen.add(key)
        rest = {name: value for name, value in row.items() if name not in (identifier, title, body)}
        yield Passage(
            id=key,
            title=row[title] if title else "" if body else next(iter(row.values())),
            text=row[body] if body else "\n".join(said),
            sentences=tuple(split_sentences(row[body])) if body else tuple(said),
            metadata={"source": source, "format": "csv", "row": number, **rest},
        )
