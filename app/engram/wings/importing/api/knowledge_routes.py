"""Routes of Open WebUI's knowledge bases that its sync tool `oikb` calls, over documents of collections."""

from typing import Annotated, Any, TypeVar

import orjson
from fastapi import APIRouter, Path, Request, Response, status
from pydantic import BaseModel, ValidationError
from starlette.concurrency import run_in_threadpool

from engram.api.body_reading import BODIES, ArrivingBody, Route, receive_whole
from engram.api.corpus.passage_bodies import MAX_JSON_BYTES, reason
from engram.api.dependencies import App, Asker, Need, OptionalKey, PathScope, build_opener, needs
from engram.api.operations import operation
from engram.api.request_principal import holder
from engram.api.schemas import CollectionName
from engram.composition.container import Application
from engram.context.errors import (
    InvalidRequestError,
    MalformedRequestError,
    NotFoundError,
    PayloadTooLargeError,
    UnsupportedMediaTypeError,
)
from engram.core.auth.access_keys import INGEST
from engram.services.auth.scope import Principal, Scope
from engram.wings.importing.api.file_ingest import ReceivedFile, ingest_file, receive_file
from engram.wings.importing.api.knowledge_schemas import (
    TOKEN_CHARACTERS,
    CleanedOut,
    CleanupIn,
    DirectoryIn,
    DirectoryOut,
    FileMetadataIn,
    FileOut,
    FileStatusOut,
    KnowledgeFileOut,
    KnowledgeFilesOut,
    KnowledgeOut,
    SyncDiffOut,
    SyncManifestIn,
)
from engram.wings.importing.api.multipart_form import Form, read_boundary
from engram.wings.importing.conversion import chunks
from engram.wings.importing.conversion.folder import NAME_CHARACTERS
from engram.wings.importing.conversion.formats import find_kind
from engram.wings.importing.parts import ImportingServices
from engram.wings.importing.services.file_tokens import (
    FOLDER,
    FileToken,
    name_source,
    read_directory,
    write_directory,
)
from engram.wings.importing.services.knowledge_sync import SyncPlan, build_missing_file_error

router = APIRouter(tags=["frontends"], route_class=Route, prefix="/api/v1")

FORM_BYTES = 64 * 1024
"""What a form has before its file at most, and around it."""
M = TypeVar("M", bound=BaseModel)


def _json_body(model: type[BaseModel]) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


FORM: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "metadata"],
                    "properties": {
                        "metadata": {
                            "type": "string",
                            "contentMediaType": "application/json",
                            "description": "`knowledge_id`, the collection; `file_hash`, the checksum in the "
                            "manifest; `directory_id`, of the file's directory if it lies in one. It comes before "
                            f"the file, within the first {FORM_BYTES} bytes, so that it is judged first.",
                        },
                        "file": {"type": "string", "format": "binary", "minLength": 1},
                    },
                }
            }
        },
    }
}


@router.get("/knowledge/{name}", **operation("Read a knowledge base", needs(INGEST, readers="bound"), 404))
def get_knowledge(app: App, scope: PathScope) -> KnowledgeOut:
    """Show a collection as a knowledge base."""
    name = app.corpus.ingest.collection(scope).name
    return KnowledgeOut(id=name, name=name, description="A collection of Engram.")


@router.get(
    "/knowledge/{name}/files", **operation("List files of a knowledge base", needs(INGEST, readers="bound"), 404)
)
def get_knowledge_files(app: App, scope: PathScope) -> KnowledgeFilesOut:
    """List the documents that a sync tool brought into the collection."""
    name = scope.collection.name
    items = []
    for one in app.wing(ImportingServices).knowledge.list_files(scope):
        filename = one.source.removeprefix(f"{FOLDER}/")
        token = FileToken.of(name, one)
        meta = {"name": filename, "file_hash": one.digest or ""}
        items.append(KnowledgeFileOut(id=token.write(), filename=filename, meta=meta))
    return KnowledgeFilesOut(items=items, total=len(items))


@router.post(
    "/knowledge/{name}/sync/diff",
    openapi_extra=_json_body(SyncManifestIn),
    **operation("Compare a source", needs(INGEST, readers="bound"), reads_json=True),
)
async def post_knowledge_diff(
    request: Request, name: CollectionName, app: App, asker: Asker, need: Need
) -> SyncDiffOut:
    """Answer which files to upload and which documents to clean up first. Nothing is changed.

    The collection need not exist: the first upload makes it.
    """
    manifest = await _receive(request, SyncManifestIn)
    entries = [one.read() for one in manifest.manifest]

    def plan_sync() -> SyncPlan:
        scope = _find_scope(app, asker, need, name)
        return app.wing(ImportingServices).knowledge.plan(scope, entries)

    return SyncDiffOut.from_service(await run_in_threadpool(plan_sync), manifest)


@router.post(
    "/knowledge/{name}/sync/cleanup",
    openapi_extra=_json_body(CleanupIn),
    **operation("Clean up a knowledge base", needs(INGEST, readers="bound"), 404, reads_json=True, embeds=True),
)
async def post_knowledge_cleanup(request: Request, app: App, scope: PathScope) -> CleanedOut:
    """Delete and move documents that a comparison named, unless they changed since.

    A document that an upload replaces stays until then, so that what was learned of it follows its text.
    """
    body = await _receive(request, CleanupIn)
    tokens = [FileToken.read(one) for one in body.file_ids]
    files = await run_in_threadpool(app.wing(ImportingServices).knowledge.clean, scope, tokens)
    app.auth.reads.note_write(scope.collection.id)
    return CleanedOut(files=files)


@router.post(
    "/knowledge/{name}/dirs/create",
    **operation("Name a directory", needs(INGEST, readers="bound"), reads_json=True),
)
def post_knowledge_directory(
    name: CollectionName, body: DirectoryIn, app: App, asker: Asker, need: Need
) -> DirectoryOut:
    """Answer the id of a directory, to name in uploads. Nothing is stored."""
    _find_scope(app, asker, need, name)
    parent = f"{read_directory(body.parent_id)}/" if body.parent_id else ""
    return DirectoryOut(id=write_directory(parent + body.name), name=body.name, parent_id=body.parent_id)


@router.post(
    "/knowledge/{name}/reset",
    **operation("Reset a knowledge base", needs(INGEST, readers="bound"), 404, 409),
)
def post_knowledge_reset(app: App, scope: PathScope) -> CleanedOut:
    """Delete all documents that a sync tool brought into the collection. Others stay."""
    files = app.wing(ImportingServices).knowledge.reset(scope)
    app.auth.reads.note_write(scope.collection.id)
    return CleanedOut(files=files)


@router.post(
    "/files/",
    status_code=status.HTTP_202_ACCEPTED,
    openapi_extra=FORM,
    **operation("Upload a file", needs(INGEST), 400, 404, 409, 413, 415, 501, embeds=True),
)
async def post_file(
    request: Request, response: Response, app: App, asker: Asker, need: Need, key: OptionalKey
) -> FileOut:
    """Convert a file into passages. A job ingests them in place of those of its earlier version.

    A file that cannot be read is refused with the reason, and nothing of it is kept. In a collection where
    documents have readers, nobody but `admin` reads a new document until you say who may.
    """
    boundary = read_boundary(request.headers.get("content-type", ""))
    if boundary is None:
        raise UnsupportedMediaTypeError("Send the file as multipart/form-data.")
    documents = app.wing(ImportingServices).documents
    documents.check()
    most = documents.limits.file_bytes
    too_large = f"Files end at {most} bytes."
    body = ArrivingBody(request, most + FORM_BYTES, too_large)
    form = await _receive_head(body, boundary)
    filename, metadata = _read_head(form)
    opening = (await build_opener(app, asker, need))(metadata.knowledge_id)  # refused before the file is received
    path = read_directory(metadata.directory_id) if metadata.directory_id else ""
    source = name_source(path, filename)
    if len(source) > NAME_CHARACTERS:
        raise InvalidRequestError(f"A path of more than {NAME_CHARACTERS} characters names no document.")
    closed = await run_in_threadpool(_check_source, app, asker, need, metadata.knowledge_id, source)
    async with receive_file(request, body):
        data = await BODIES.do(holder(request.scope), form.cut_file, body.data)
        body.data.clear()
        if len(data) > most:
            raise PayloadTooLargeError(too_large)
        received = ReceivedFile(
            source,
            find_kind(filename),
            data,
            chunks.SIZE,
            chunks.OVERLAP,
            folder=FOLDER,
            digest=metadata.file_hash,
            closed=closed,
        )
        reception = app.corpus.ingest.receive(opening, key)
        accepted = await ingest_file(request, response, documents, reception, received)
    token = FileToken(metadata.knowledge_id, source, metadata.file_hash, job=str(accepted.job_id))
    meta = {"name": filename, "size": len(data), "file_hash": metadata.file_hash}
    return FileOut(**accepted.model_dump(), id=token.write(), filename=filename, meta=meta)


@router.get(
    "/files/{file_id}/process/status",
    **operation("Progress of a file", needs(INGEST, readers="bound"), 404),
)
def get_file_status(
    file_id: Annotated[str, Path(min_length=1, max_length=TOKEN_CHARACTERS, description="The id of an upload.")],
    app: App,
    asker: Asker,
    need: Need,
) -> FileStatusOut:
    """Show whether the passages of a file are ingested."""
    token = FileToken.read(file_id)
    try:
        scope = app.auth.access.scope(token.collection, asker, need)
    except NotFoundError as missing:
        raise build_missing_file_error() from missing
    state, error = app.wing(ImportingServices).knowledge.find_state(scope, token)
    app.auth.reads.note_write(scope.collection.id)
    return FileStatusOut(status=state, error=error)


async def _receive(request: Request, model: type[M]) -> M:
    body = await receive_whole(request, MAX_JSON_BYTES, f"Bodies end at {MAX_JSON_BYTES} bytes.")
    return await BODIES.do(holder(request.scope), _read_json, body, model)


def _read_json(body: bytes, model: type[M]) -> M:
    try:
        return model.model_validate(orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise MalformedRequestError(f"The body is not JSON: {error}.") from error
    except ValidationError as error:
        raise InvalidRequestError(reason(error, "body")) from error


async def _receive_head(body: ArrivingBody, boundary: bytes) -> Form:
    """Receive a form up to the contents of its file.

    Raises:
        MalformedRequestError: it did not arrive whole, or is none.
        InvalidRequestError: it has no file.
        PayloadTooLargeError: the file does not begin within the first ``FORM_BYTES``.
    """
    form = Form(boundary)
    while body.has_more:
        await body.receive_more()
        is_at_file = form.read(body.data)
        if (form.start if is_at_file else len(body.data)) > FORM_BYTES:
            raise PayloadTooLargeError(f"The file of the form begins within its first {FORM_BYTES} bytes.")
        if is_at_file:
            return form
    raise MalformedRequestError("The form has no end.")


def _read_head(form: Form) -> tuple[str, FileMetadataIn]:
    """Name of the file, and what the field before it says."""
    metadata = form.fields.get("metadata")
    if form.name != "file" or not form.filename or metadata is None:
        raise InvalidRequestError("The form takes a field `metadata`, and after it a file `file` with a name.")
    try:
        return form.filename, FileMetadataIn.model_validate(orjson.loads(metadata))
    except orjson.JSONDecodeError as error:
        raise InvalidRequestError(f"metadata: it is not JSON: {error}.") from error
    except ValidationError as error:
        raise InvalidRequestError(reason(error, "metadata")) from error


def _check_source(app: Application, asker: Principal, need: str, collection: str, source: str) -> bool:
    """Check that a file may make this document. Return whether nobody but admins may read it."""
    scope = _find_scope(app, asker, need, collection)
    return scope is not None and app.wing(ImportingServices).knowledge.check_source(scope, source)


def _find_scope(app: Application, asker: Principal, need: str, collection: str) -> Scope | None:
    """Return the scope of a collection, or None if the first upload makes it.

    Raises:
        NotFoundError, ForbiddenError: the caller may not make it.
    """
    try:
        return app.auth.access.scope(collection, asker, need)
    except NotFoundError:
        app.auth.access.prepare_opening(collection, asker, need)
        return None
