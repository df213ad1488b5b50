"""Documents that passages were made of."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, status

from engram.api.body_reading import Route
from engram.api.corpus.schemas import SOURCE_CHARACTERS, DocumentOut, DocumentsOut, normalise_source
from engram.api.dependencies import App, Limit, QueryScope, needs
from engram.api.operations import operation
from engram.api.path_converters import path_text
from engram.api.schemas import Storable
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
    page = app.corpus.documents.page(scope, after, limit, normalise_source(prefix))
    return DocumentsOut(
        collection=scope.collection.name,
        documents=[DocumentOut.model_validate(document) for document in page],
        next_after=page[-1].source if len(page) == limit else None,
    )


@router.delete(
    "/documents/{source:text}",
    status_code=status.HTTP_204_NO_CONTENT,
    **operation("Delete a document", needs(INGEST, readers="bound"), 404),
)
def delete_document(source: SourcePath, app: App, scope: QueryScope) -> None:
    """Remove a document with its passages and everything that only these held."""
    app.corpus.documents.delete(scope, normalise_source(path_text(source)))
    app.auth.reads.note_write(scope.collection.id)
