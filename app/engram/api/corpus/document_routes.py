"""Documents that passages were made of."""

from typing import Annotated

import orjson
from fastapi import APIRouter, Path, Query, Request, status
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from engram.api.body_reading import BODIES, Route, receive_whole
from engram.api.corpus.document_schemas import ChangedDocument, DocumentChangeIn, ManifestIn, StepsOut
from engram.api.corpus.passage_bodies import MAX_JSON_BYTES, reason
from engram.api.corpus.schemas import SOURCE_CHARACTERS, DocumentOut, DocumentsOut, normalise_source
from engram.api.dependencies import App, Limit, QueryScope, cut_page, needs
from engram.api.operations import operation
from engram.api.path_converters import path_text
from engram.api.request_principal import holder
from engram.api.schemas import Storable
from engram.context.errors import InvalidRequestError, MalformedRequestError
from engram.core.auth.access_keys import INGEST, READ

router = APIRouter(tags=["passages"], route_class=Route)

SourcePath = Annotated[str, Path(min_length=1, max_length=SOURCE_CHARACTERS, description="The document's source.")]


@router.get("/documents", **operation("List documents", needs(READ, readers="bound"), 404))
def get_documents(
    app: App,
    scope: QueryScope,
    after: Annotated[Storable | None, Query(max_length=SOURCE_CHARACTERS)] = None,
    prefix: Annotated[
        Storable, Query(max_length=SOURCE_CHARACTERS, description="Only those whose source begins so.")
    ] = "",
    limit: Limit = 100,
) -> DocumentsOut:
    """List the documents that you may read, by their sources, with passages, pages, date and notes."""
    rows = app.corpus.documents.page(scope, after, limit + 1, normalise_source(prefix))
    page, last = cut_page(rows, limit)
    return DocumentsOut(
        collection=scope.collection.name,
        documents=[DocumentOut.model_validate(document) for document in page],
        next_after=last and last.source,
    )


@router.post(
    "/documents:compare",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ManifestIn"}}},
        }
    },
    **operation("Compare a folder", needs(INGEST, readers="bound"), 404, reads_json=True),
)
async def post_manifest(request: Request, app: App, scope: QueryScope) -> StepsOut:
    """Answer what to upload, move, change and delete, so that the documents of a folder are in step with it.

    Nothing is changed.
    """
    too_large = f"A manifest ends at {MAX_JSON_BYTES} bytes; compare folder by folder."
    body = await receive_whole(request, MAX_JSON_BYTES, too_large)
    manifest = await BODIES.do(holder(request.scope), _read_manifest, body)
    listed = [one.read() for one in manifest.documents]
    steps = await run_in_threadpool(
        app.corpus.documents.compare, scope, manifest.folder, manifest.earlier_folders, listed
    )
    return StepsOut.model_validate(steps)


def _read_manifest(body: bytes) -> ManifestIn:
    try:
        return ManifestIn.model_validate(orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise MalformedRequestError(f"The body is not JSON: {error}.") from error
    except ValidationError as error:
        raise InvalidRequestError(reason(error, "body")) from error


@router.patch(
    "/documents/{source:text}",
    **operation("Change a document", needs(INGEST, readers="bound"), 404, 409, reads_json=True),
)
def patch_document(source: SourcePath, body: DocumentChangeIn, app: App, scope: QueryScope) -> ChangedDocument:
    """Change the source, the folder or the readers of a document in one transaction; nothing is embedded.

    What was learned stays. Readers are those of the passages that you see.
    """
    before = normalise_source(path_text(source))
    changed = app.corpus.documents.change(scope, before, body.read())
    app.auth.reads.note_write(scope.collection.id)
    return ChangedDocument(collection=scope.collection.name, source=body.source or before, changed=changed)


@router.delete(
    "/documents/{source:text}",
    status_code=status.HTTP_204_NO_CONTENT,
    **operation("Delete a document", needs(INGEST, readers="bound"), 404),
)
def delete_document(source: SourcePath, app: App, scope: QueryScope) -> None:
    """Remove a document with its passages and everything that only these held.

    Passages that you do not see stay, and the document with them.
    """
    app.corpus.documents.delete(scope, normalise_source(path_text(source)))
    app.auth.reads.note_write(scope.collection.id)
