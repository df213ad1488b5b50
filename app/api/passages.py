"""Passages, ingest jobs and collections."""

from collections.abc import AsyncIterator
from typing import Annotated, Any
from uuid import UUID

import orjson
from fastapi import APIRouter, Path, Query, Request, Response, status
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from app.api.dependencies import App, InCollection, Limit, OptionalKey
from app.api.problems import responses
from app.api.schemas.common import DEFAULT_COLLECTION, CollectionName, storable
from app.api.schemas.passages import (
    CollectionOut,
    CollectionsOut,
    JobAccepted,
    JobOut,
    LineError,
    PassageIn,
    PassageOut,
    PassagesIn,
    StoredSentenceOut,
)
from app.errors import (
    InvalidRequestError,
    MalformedRequestError,
    PayloadTooLargeError,
    UnsupportedMediaTypeError,
)
from app.services.ingest import Reception

router = APIRouter(tags=["passages"])

JSON_TYPE = "application/json"
NDJSON_TYPES = ("application/x-ndjson", "application/ndjson", "application/jsonl")
MAX_JSON_BYTES = 64 * 1024 * 1024
MAX_LINE_BYTES = 4 * 1024 * 1024
LINES_PER_WRITE = 500

BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            JSON_TYPE: {"schema": {"$ref": "#/components/schemas/PassagesIn"}},
            NDJSON_TYPES[0]: {
                "schema": {"type": "string", "description": "One passage a line, any number of lines."}
            },
        },
    }
}


@router.post(
    "/passages",
    status_code=status.HTTP_202_ACCEPTED,
    response_model=JobAccepted,
    responses=responses(400, 413, 415),
    openapi_extra=BODY,
    summary="Ingest passages",
)
async def post_passages(
    request: Request,
    response: Response,
    app: App,
    key: OptionalKey,
    collection: InCollection = DEFAULT_COLLECTION,
) -> JobAccepted:
    """Take passages as JSON (up to 1,000) or as streamed NDJSON of any length; a job ingests them.

    A JSON document is taken whole or not at all. Of NDJSON, bad lines are reported on the job by number and
    the rest go on. If the body does not arrive whole, none of it is taken.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in (JSON_TYPE, *NDJSON_TYPES):
        raise UnsupportedMediaTypeError(f"Send {JSON_TYPE} or {NDJSON_TYPES[0]}.")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMediaTypeError("Compressed bodies are not read; send the body as it is.")
    if media_type == JSON_TYPE:
        body = await _whole(request)
        document = _parse_document(body)
        reception = await run_in_threadpool(app.ingest.receive, collection, key)
        reception.digest(body)
        lines = [(number, passage.body()) for number, passage in enumerate(document.passages, start=1)]
        await run_in_threadpool(reception.add, lines, [])
    else:
        reception = await run_in_threadpool(app.ingest.receive, collection, key)
        await _receive_lines(request, reception)
    job_id = await run_in_threadpool(reception.finish)
    status_url = f"/jobs/{job_id}?collection={collection}"
    response.headers["Location"] = status_url
    return JobAccepted(job_id=job_id, collection=collection, status_url=status_url)


@router.get("/jobs/{job_id}", response_model=JobOut, responses=responses(404), summary="Progress of an ingest")
def get_job(
    job_id: UUID,
    app: App,
    collection: InCollection = DEFAULT_COLLECTION,
    errors_after: Annotated[int, Query(ge=0, le=2**62)] = 0,
    errors_limit: Limit = 100,
) -> JobOut:
    """How far the job is, and which lines were rejected and why."""
    job = app.ingest.job(collection, job_id)
    errors = app.ingest.errors(job, errors_after, errors_limit)
    done = job.created + job.updated + job.unchanged + job.rejected
    return JobOut(
        job_id=job.id,
        collection=job.collection,
        status=job.status,
        received=job.received,
        created=job.created,
        updated=job.updated,
        unchanged=job.unchanged,
        rejected=job.rejected,
        waiting=job.received - done,
        error=job.error,
        created_at=job.created_at,
        updated_at=job.updated_at,
        finished_at=job.finished_at,
        errors=[LineError(line=line, reason=reason) for line, reason in errors],
        next_errors_after=errors[-1][0] if len(errors) == errors_limit else None,
    )


ExternalIdPath = Annotated[str, Path(min_length=1, max_length=512, description="Your id of the passage.")]


@router.get(
    "/passages/{passage_id:path}", response_model=PassageOut, responses=responses(404), summary="Read a passage"
)
def get_passage(passage_id: ExternalIdPath, app: App, collection: InCollection = DEFAULT_COLLECTION) -> PassageOut:
    """The passage with its sentences and their ids."""
    passage, sentences = app.ingest.passage(collection, _path_text(passage_id))
    return PassageOut(
        id=passage.external_id,
        title=passage.title,
        text=passage.text,
        metadata=passage.metadata,
        sentences=[
            StoredSentenceOut(sentence_id=sentence.id, position=sentence.position, text=sentence.text)
            for sentence in sentences
        ],
    )


@router.delete(
    "/passages/{passage_id:path}",
    status_code=status.HTTP_204_NO_CONTENT,
    responses=responses(404),
    summary="Remove a passage",
)
def delete_passage(passage_id: ExternalIdPath, app: App, collection: InCollection = DEFAULT_COLLECTION) -> None:
    """Remove the passage and everything that only it held: sentences, memories, entities."""
    app.ingest.delete_passage(collection, _path_text(passage_id))


@router.get("/collections", response_model=CollectionsOut, responses=responses(), summary="List collections")
def get_collections(
    app: App, after: Annotated[CollectionName | None, Query()] = None, limit: Limit = 100
) -> CollectionsOut:
    """Collections in name order."""
    found = app.ingest.collections(after, limit)
    return CollectionsOut(
        collections=[CollectionOut.model_validate(item) for item in found],
        next_after=found[-1].name if len(found) == limit else None,
    )


@router.get(
    "/collections/{name}", response_model=CollectionOut, responses=responses(404), summary="Read a collection"
)
def get_collection(name: CollectionName, app: App) -> CollectionOut:
    """What the collection holds."""
    return CollectionOut.model_validate(app.ingest.collection(name))


@router.delete(
    "/collections/{name}",
    status_code=status.HTTP_204_NO_CONTENT,
    responses=responses(404),
    summary="Remove a collection",
)
def delete_collection(name: CollectionName, app: App) -> None:
    """Remove the collection with everything in it, learned state and its log included."""
    app.ingest.delete_collection(name)


async def _whole(request: Request) -> bytes:
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MAX_JSON_BYTES:
                break
    except ClientDisconnect as error:
        raise MalformedRequestError("The body did not arrive whole.") from error
    if len(body) > MAX_JSON_BYTES:
        raise PayloadTooLargeError(f"JSON bodies end at {MAX_JSON_BYTES} bytes; send NDJSON.")
    return bytes(body)


def _parse_document(body: bytes) -> PassagesIn:
    try:
        return PassagesIn.model_validate(orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise MalformedRequestError(f"The body is not JSON: {error}") from error
    except ValidationError as error:
        raise InvalidRequestError(_reason(error)) from error


async def _receive_lines(request: Request, reception: Reception) -> None:
    """Stage the lines as they arrive; leave nothing behind if they do not all come."""
    number = 0
    try:
        lines: list[tuple[int, dict[str, Any]]] = []
        errors: list[tuple[int, str]] = []
        async for raw in _lines(request, reception):
            number += 1
            if raw is None:
                errors.append((number, f"longer than {MAX_LINE_BYTES} bytes"))
            elif raw.strip():
                _read_line(number, raw, lines, errors)
            if len(lines) + len(errors) >= LINES_PER_WRITE:
                await run_in_threadpool(reception.add, lines, errors)
                lines, errors = [], []
        if lines or errors:
            await run_in_threadpool(reception.add, lines, errors)
    except ClientDisconnect as error:
        await run_in_threadpool(reception.abort)
        raise MalformedRequestError("The body did not arrive whole.") from error
    except BaseException:
        await run_in_threadpool(reception.abort)
        raise
    if number == 0:
        await run_in_threadpool(reception.abort)
        raise InvalidRequestError("The body holds no line.")


async def _lines(request: Request, reception: Reception) -> AsyncIterator[bytes | None]:
    """The body's lines; None stands for one that is too long to keep."""
    rest = b""
    overlong = False
    async for chunk in request.stream():
        reception.digest(chunk)
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield None if overlong or len(line) > MAX_LINE_BYTES else line
            overlong = False
        if len(rest) > MAX_LINE_BYTES:
            rest, overlong = b"", True
    if rest or overlong:
        yield None if overlong else rest


def _read_line(
    number: int, raw: bytes, lines: list[tuple[int, dict[str, Any]]], errors: list[tuple[int, str]]
) -> None:
    try:
        lines.append((number, PassageIn.model_validate(orjson.loads(raw)).body()))
    except orjson.JSONDecodeError as error:
        errors.append((number, f"not JSON: {error}"))
    except ValidationError as error:
        errors.append((number, _reason(error)))


def _reason(error: ValidationError) -> str:
    """The first few mistakes in one line."""
    parts = [f"{'.'.join(str(at) for at in item['loc']) or 'line'}: {item['msg']}" for item in error.errors()[:3]]
    return "; ".join(parts).encode("utf-8", "replace").decode().replace("\x00", "\\0")


def _path_text(text: str) -> str:
    try:
        return storable(text)
    except ValueError as error:
        raise InvalidRequestError(f"The passage id {error}.") from error
