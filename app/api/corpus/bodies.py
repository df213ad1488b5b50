"""Reading what ``POST /passages`` is sent: one JSON document, or NDJSON as it streams in."""

from collections.abc import AsyncIterator
from typing import Any

import orjson
from fastapi import Request
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from app.api.corpus.passage_schemas import PassageIn, PassagesIn
from app.errors import InvalidRequestError, MalformedRequestError, PayloadTooLargeError
from app.services.corpus.ingest import Reception

MAX_JSON_BYTES = 64 * 1024 * 1024
MAX_LINE_BYTES = 4 * 1024 * 1024
LINES_PER_WRITE = 500
BYTES_PER_WRITE = 16 * 1024 * 1024
MISTAKES_NAMED = 3
NAME_CHARACTERS = 200
BOM = b"\xef\xbb\xbf"


async def receive_document(request: Request, reception: Reception) -> None:
    """Stage a JSON document, whole or not at all."""
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_JSON_BYTES:
                raise PayloadTooLargeError(f"JSON bodies end at {MAX_JSON_BYTES} bytes; send NDJSON.")
    except ClientDisconnect as error:
        raise MalformedRequestError("The body did not arrive whole.") from error
    await run_in_threadpool(_stage_document, bytes(body), reception)


async def receive_lines(request: Request, reception: Reception) -> None:
    """Stage NDJSON as it arrives; leave nothing behind if it does not come whole."""
    try:
        await _stage_lines(request, reception)
    except ClientDisconnect as error:
        await run_in_threadpool(reception.abort)
        raise MalformedRequestError("The body did not arrive whole.") from error
    except BaseException:
        await run_in_threadpool(reception.abort)
        raise


def _stage_document(body: bytes, reception: Reception) -> None:
    try:
        document = PassagesIn.model_validate(orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise MalformedRequestError(f"The body is not JSON: {error}.") from error
    except ValidationError as error:
        raise InvalidRequestError(_reason(error, "body")) from error
    reception.digest(body)
    lines = [(number, passage.body()) for number, passage in enumerate(document.passages, start=1)]
    try:
        reception.add(lines, [])
    except BaseException:
        reception.abort()
        raise


async def _stage_lines(request: Request, reception: Reception) -> None:
    size = 0
    blank = True
    lines: list[tuple[int, dict[str, Any]]] = []
    errors: list[tuple[int, str]] = []
    number = 0
    async for raw in _lines(request, reception):
        number += 1
        if raw is None:
            errors.append((number, f"longer than {MAX_LINE_BYTES} bytes"))
        elif raw.strip():
            size += len(raw)
            _read_line(number, raw, lines, errors)
        blank = blank and not lines and not errors
        if len(lines) + len(errors) >= LINES_PER_WRITE or size >= BYTES_PER_WRITE:
            await run_in_threadpool(reception.add, lines, errors)
            lines, errors, size = [], [], 0
    if blank:
        raise InvalidRequestError("The body holds no line.")
    if lines or errors:
        await run_in_threadpool(reception.add, lines, errors)


async def _lines(request: Request, reception: Reception) -> AsyncIterator[bytes | None]:
    """The body's lines; None stands for one that is too long to keep."""
    rest = b""
    overlong = False
    first = True
    async for chunk in request.stream():
        reception.digest(chunk)
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield None if overlong or len(line) > MAX_LINE_BYTES else line.removeprefix(BOM if first else b"")
            overlong = first = False
        if len(rest) > MAX_LINE_BYTES:
            rest, overlong = b"", True
    if rest or overlong:
        yield None if overlong else rest.removeprefix(BOM if first else b"")


def _read_line(
    number: int, raw: bytes, lines: list[tuple[int, dict[str, Any]]], errors: list[tuple[int, str]]
) -> None:
    try:
        lines.append((number, PassageIn.model_validate(orjson.loads(raw)).body()))
    except orjson.JSONDecodeError as error:
        errors.append((number, f"not JSON: {error}"))
    except ValidationError as error:
        errors.append((number, _reason(error, "line")))


def _reason(error: ValidationError, whole: str) -> str:
    """The first few mistakes in one line; ``whole`` names what is wrong as a whole."""
    mistakes = error.errors(include_url=False, include_context=False, include_input=False)[:MISTAKES_NAMED]
    parts = [
        f"{'.'.join(str(at)[:NAME_CHARACTERS] for at in mistake['loc']) or whole}: {mistake['msg']}"
        for mistake in mistakes
    ]
    return "; ".join(parts).encode("utf-8", "replace").decode().replace("\x00", "\\0")
