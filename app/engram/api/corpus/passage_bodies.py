"""Reading what ``POST /passages`` is sent: one JSON document, or NDJSON as it streams in."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import orjson
from fastapi import Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from engram.api.body_reading import BODIES, receive_whole
from engram.api.corpus.schemas import DocumentIn, PassageIn, PassagesIn, normalise_source
from engram.api.problems import describe_mistake, name_place
from engram.api.request_principal import holder
from engram.context.errors import InvalidRequestError, MalformedRequestError
from engram.core.text.long_numbers import may_hold_long_number
from engram.services.corpus.passage_intake import PassageReception

MAX_JSON_BYTES = 16 * 1024 * 1024
"""It is parsed in one call, during which this process does nothing else."""
MAX_LINE_BYTES = 4 * 1024 * 1024
INLINE_BYTES = 4 * 1024
"""Of NDJSON, what arrives in pieces up to here is read where it is."""
LINES_PER_WRITE = 500
BYTES_PER_WRITE = 4 * 1024 * 1024
"""From which on a batch is staged: one statement with more takes seconds."""
MISTAKES_NAMED = 3
UNKNOWN_FIELD_TEXT = "is no field here; what is your own belongs into metadata"
BOM = b"\xef\xbb\xbf"


Lines = list[tuple[int, dict[str, Any]]]
Mistakes = list[tuple[int, str]]
Documents = list[dict[str, Any]]
Batch = tuple[Lines, Mistakes, Documents]
"""What is staged at once."""


async def receive_document(
    request: Request, collection: str | None, receive: Callable[[str | None], PassageReception]
) -> PassageReception:
    """Stage a JSON document, whole or not at all, for the collection that it or the request's query names.

    Raises:
        InvalidRequestError: it is not what it should be, or they name two collections.
    """
    body = await receive_whole(request, MAX_JSON_BYTES, f"JSON bodies end at {MAX_JSON_BYTES} bytes; send NDJSON.")
    named, lines, documents = await BODIES.do(holder(request.scope), _read_document, body)
    if None not in (named, collection) and named != collection:
        raise InvalidRequestError(f"body.collection: the query says {collection!r}, the body {named!r}")
    reception = receive(collection or named)
    await BODIES.do(holder(request.scope), reception.digest, body)
    await run_in_threadpool(_stage_document, lines, documents, reception)
    return reception


async def receive_lines(request: Request, reception: PassageReception) -> None:
    """Stage NDJSON as it arrives; leave nothing behind if it does not come whole."""
    try:
        await _stage_lines(request, reception)
    except ClientDisconnect as error:
        await run_in_threadpool(reception.abort)
        raise MalformedRequestError("The body did not arrive whole.") from error
    except BaseException:
        await run_in_threadpool(reception.abort)
        raise


def _parse(body: bytes) -> Any:
    """Parse JSON without rounding a whole number, as orjson rounds one beyond 64 bits."""
    value = orjson.loads(body)
    if may_hold_long_number(body):
        with suppress(RecursionError):  # nested deeper than any field may be: refused in either form
            return json.loads(body)
    return value


def _read_document(body: bytes) -> tuple[str | None, Lines, Documents]:
    try:
        document = PassagesIn.model_validate(_parse(body))
    except orjson.JSONDecodeError as error:
        raise MalformedRequestError(f"The body is not JSON: {error}.") from error
    except ValidationError as error:
        raise InvalidRequestError(reason(error, "body")) from error
    lines = [(number, passage.body()) for number, passage in enumerate(document.passages, start=1)]
    return document.collection, lines, [one.body() for one in document.documents]


def _stage_document(lines: Lines, documents: Documents, reception: PassageReception) -> None:
    """Stage a document in pieces, each in a transaction of its own: none of it counts before all of it is there."""
    try:
        for piece in pieces(lines):
            reception.add(piece, [], documents, whole=True)
            documents = []
    except BaseException:
        reception.abort()
        raise


def pieces(lines: Lines) -> Iterator[Lines]:
    """The lines in their order, in batches that one statement takes."""
    batch: Lines = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(orjson.dumps(line[1]))
        if len(batch) >= LINES_PER_WRITE or size >= BYTES_PER_WRITE:
            yield batch
            batch, size = [], 0
    if batch or not lines:
        yield batch


async def _stage_lines(request: Request, reception: PassageReception) -> None:
    reader = _LineBatcher(reception)
    async for chunk in request.stream():
        if len(chunk) > INLINE_BYTES:
            batches = await BODIES.do(holder(request.scope), reader.take, chunk)
        else:
            batches = reader.take(chunk)
        for batch in batches:
            await run_in_threadpool(reception.add, *batch)
    for batch in await BODIES.do(holder(request.scope), reader.end):
        await run_in_threadpool(reception.add, *batch)
    if not reader.has_lines:
        raise InvalidRequestError("The body holds no line.")


class _LineBatcher:
    """Makes batches to stage of NDJSON in whatever pieces it comes.

    Attributes:
        has_lines: whether there was any line that is not blank.
    """

    def __init__(self, reception: PassageReception) -> None:
        self.has_lines = False
        self._reception = reception
        self._rest = b""
        self._overlong = False
        self._number = 0
        self._size = 0
        self._lines: Lines = []
        self._errors: Mistakes = []
        self._documents: Documents = []

    def take(self, chunk: bytes) -> list[Batch]:
        """The batches that this piece made whole."""
        self._reception.digest(chunk)
        return list(self._batches(chunk))

    def end(self) -> list[Batch]:
        """Return the remaining lines at the end of the body."""
        if self._rest or self._overlong:
            self._read(self._rest)
        batch = self._lines, self._errors, self._documents
        return [batch] if any(batch) else []

    def _batches(self, chunk: bytes) -> Iterator[Batch]:
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        for line in whole:
            if not line and not self._overlong:  # a body may hold millions of these
                self._number += 1
                continue
            self._read(line)
            size = len(self._lines) + len(self._errors) + len(self._documents)
            if size >= LINES_PER_WRITE or self._size >= BYTES_PER_WRITE:
                yield self._lines, self._errors, self._documents
                self._lines, self._errors, self._documents, self._size = [], [], [], 0
        if len(self._rest) > MAX_LINE_BYTES:
            self._rest, self._overlong = b"", True

    def _read(self, line: bytes) -> None:
        self._number += 1
        overlong, self._overlong = self._overlong, False
        raw = line.removeprefix(BOM) if self._number == 1 else line
        if overlong or len(raw) > MAX_LINE_BYTES:
            self._errors.append((self._number, f"longer than {MAX_LINE_BYTES} bytes"))
        elif raw.strip():
            self._size += len(raw)
            self._read_value(raw)
        else:
            return
        self.has_lines = True

    def _read_value(self, raw: bytes) -> None:
        """Read a passage, or a document: an object with ``source`` and without ``text``."""
        value = None
        try:
            value = _parse(raw)
            if isinstance(value, dict) and "source" in value and "text" not in value:
                self._documents.append(DocumentIn.model_validate(value).body())
            else:
                self._lines.append((self._number, PassageIn.model_validate(value).body()))
        except orjson.JSONDecodeError as error:
            self._errors.append((self._number, f"not JSON: {error}"))
        except ValidationError as error:
            self._errors.append((self._number, reason(error, "line")))
            if isinstance(value, dict) and isinstance(value.get("document"), str):
                self._reception.note_incomplete(normalise_source(value["document"]))


def reason(error: ValidationError, whole: str) -> str:
    """The first few mistakes in one line; ``whole`` names what is wrong as a whole."""
    mistakes = error.errors(include_url=False, include_context=False)[:MISTAKES_NAMED]
    parts = [
        f"{'.'.join(name_place(mistake['loc'])) or whole}: "
        f"{UNKNOWN_FIELD_TEXT if mistake['type'] == 'extra_forbidden' else describe_mistake(mistake)}"
        for mistake in mistakes
    ]
    return "; ".join(parts).encode("utf-8", "replace").decode().replace("\x00", "\\0")
