"""Documents: files that the service converts into passages."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response, status
from pydantic import Field, ValidationError
from starlette.concurrency import run_in_threadpool

from engram.api.body_reading import Route, receive_whole
from engram.api.client_presence import CLIENT_LEFT
from engram.api.corpus.passage_bodies import Lines, Mistakes, pieces, reason
from engram.api.corpus.schemas import DocumentIn, DocumentSource, PassageIn
from engram.api.dependencies import App, Asker, InCollection, Need, OptionalKey, build_opener, needs
from engram.api.jobs.routes import build_accepted
from engram.api.jobs.schemas import AcceptedJob
from engram.api.operations import operation
from engram.api.request_principal import holder
from engram.api.schemas import DEFAULT_COLLECTION, EncoderName, Storable
from engram.api.work_threads import WorkThreads
from engram.context.errors import (
    InvalidRequestError,
    UnsupportedMediaTypeError,
)
from engram.core.auth.access_keys import INGEST
from engram.services.corpus.passage_intake import PassageReception
from engram.wings.importing.conversion import chunks
from engram.wings.importing.conversion.documents import Conversion
from engram.wings.importing.conversion.folder import escape_name
from engram.wings.importing.conversion.formats import find_kind
from engram.wings.importing.parts import ImportingServices
from engram.wings.importing.services.document_conversion import DocumentsService

router = APIRouter(tags=["passages"], route_class=Route)

BINARY_TYPE = "application/octet-stream"
NAME_CHARACTERS = 400
"""Passage ids begin with the name and end at 512 characters."""
MOST_CONVERSIONS = 2
CONVERSION_THREADS = WorkThreads("engram-documents", MOST_CONVERSIONS)
"""Documents that a process converts at once; each takes a processor and up to ``ConversionLimits.memory_bytes``."""
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {BINARY_TYPE: {"schema": {"type": "string", "format": "binary", "minLength": 1}}},
    }
}


class AcceptedDocument(AcceptedJob):
    """A document that was converted, and the job that ingests its passages."""

    source: str = Field(
        description="The document's name, which its passages cite as `metadata.source`; their ids begin with it."
    )
    passages: int = Field(description="Passages made of it.")
    notes: list[str] = Field(
        description="How it was read and what was left out, with its place: an encoding, hidden sheets."
    )


@dataclass(frozen=True)
class _File:
    """A file that was sent.

    Attributes:
        kind: the ending that says how it is read.
        size, overlap: how it is cut.
    """

    source: str
    kind: str
    data: bytes
    size: int
    overlap: int


@router.post(
    "/documents",
    status_code=status.HTTP_202_ACCEPTED,
    openapi_extra=BODY,
    **operation("Ingest a document", needs(INGEST), 400, 404, 413, 415, 501, embeds=True),
)
async def post_documents(
    request: Request,
    response: Response,
    app: App,
    asker: Asker,
    need: Need,
    key: OptionalKey,
    name: Annotated[
        Storable,
        Query(
            min_length=1,
            max_length=NAME_CHARACTERS,
            description="The file's name, as `handbook/travel.docx`; its ending says how the body is read.",
        ),
    ],
    source: Annotated[
        DocumentSource | None,
        Query(description="The document's name; by default its file's. It replaces the document of this name."),
    ] = None,
    collection: InCollection = DEFAULT_COLLECTION,
    size: Annotated[int, Query(ge=100, le=20_000, description="Characters of a passage at most.")] = chunks.SIZE,
    overlap: Annotated[
        int, Query(ge=0, le=19_999, description="Characters that a passage repeats of the one before it, at most.")
    ] = chunks.OVERLAP,
    encoder: EncoderName = None,
) -> AcceptedDocument:
    """Convert a file into passages. A job ingests them in place of those of its earlier version.

    Reads text, Markdown, HTML, PDF, DOCX, PPTX, XLSX, CSV, TSV, EML, JSON and NDJSON. The conversion is done when
    the answer comes, so a file that cannot be read is refused here and nothing of it is kept.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != BINARY_TYPE:
        raise UnsupportedMediaTypeError(f"Send the file as {BINARY_TYPE}.")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMediaTypeError("Compressed bodies are not read; send the body as it is.")
    source = escape_name(name if source is None else source)
    if len(source) > NAME_CHARACTERS:
        raise InvalidRequestError(f"query.source: must not be longer than {NAME_CHARACTERS} characters")
    if overlap >= size:
        raise InvalidRequestError("query.overlap: must be smaller than size")
    opening = (await build_opener(app, asker, need))(collection)  # refused before the body is read
    documents = app.wing(ImportingServices).documents
    documents.check()
    most = documents.limits.file_bytes
    data = await receive_whole(request, most, f"Documents end at {most} bytes.")
    reception = app.corpus.ingest.receive(replace(opening, encoder=encoder), key)
    file = _File(source, find_kind(name), data, size, overlap)
    try:
        conversion = await CONVERSION_THREADS.do(
            holder(request.scope), _stage_passages, documents, reception, file, request.scope[CLIENT_LEFT]
        )
    except BaseException:
        await run_in_threadpool(reception.abort)
        raise
    job = build_accepted(await run_in_threadpool(reception.finish), reception.collection, response)
    return AcceptedDocument(
        **job.model_dump(), source=source, passages=len(conversion.passages), notes=list(conversion.notes)
    )


def _stage_passages(
    documents: DocumentsService, reception: PassageReception, file: _File, client_left: Callable[[], bool]
) -> Conversion:
    """Convert a document, then stage its passages; given up once the client leaves while it is converted."""
    conversion = documents.convert(
        file.source,
        file.data,
        kind=file.kind,
        size=file.size,
        overlap=file.overlap,
        client_left=client_left,
    )
    described = [DocumentIn.model_validate(conversion.describe(file.source, file.data)).body()]
    reception.digest(json.dumps([file.source, file.kind, file.size, file.overlap]).encode())
    reception.digest(file.data)
    lines, errors = _check_passages(file.source, conversion)
    for piece in pieces(lines):
        reception.add(piece, errors, described)
        errors, described = [], []
    return conversion


def _check_passages(source: str, conversion: Conversion) -> tuple[Lines, Mistakes]:
    """The passages by their numbers, and what is wrong with those that cannot be ingested."""
    lines: Lines = []
    errors: Mistakes = []
    for number, passage in enumerate(conversion.passages, 1):
        try:
            lines.append((number, PassageIn.model_validate(passage.as_json(source)).body()))
        except ValidationError as error:
            errors.append((number, reason(error, "passage")))
    return lines, errors
