"""Documents: files that the service converts into passages."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response, status

from engram.api.body_reading import ArrivingBody, Route
from engram.api.corpus.schemas import DocumentSource
from engram.api.dependencies import App, Asker, InCollection, Need, OptionalKey, build_opener, needs
from engram.api.operations import operation
from engram.api.schemas import DEFAULT_COLLECTION, EncoderName, Storable
from engram.context.errors import InvalidRequestError, UnsupportedMediaTypeError
from engram.core.auth.access_keys import INGEST
from engram.wings.importing.api.file_ingest import AcceptedDocument, ReceivedFile, ingest_file, receive_file
from engram.wings.importing.conversion import chunks
from engram.wings.importing.conversion.folder import NAME_CHARACTERS, escape_name
from engram.wings.importing.conversion.formats import find_kind
from engram.wings.importing.parts import ImportingServices

router = APIRouter(tags=["passages"], route_class=Route)

BINARY_TYPE = "application/octet-stream"
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {BINARY_TYPE: {"schema": {"type": "string", "format": "binary", "minLength": 1}}},
    }
}


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

    Reads all that `engram import` reads. The conversion is done when the answer comes, so a file that cannot be
    read is refused here and nothing of it is kept.
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
    body = ArrivingBody(request, most, f"Documents end at {most} bytes.")
    async with receive_file(request, body):
        data = bytes(body.data)
        body.data.clear()
        reception = app.corpus.ingest.receive(replace(opening, encoder=encoder), key)
        file = ReceivedFile(source, find_kind(name), data, size, overlap)
        return await ingest_file(request, response, documents, reception, file)
