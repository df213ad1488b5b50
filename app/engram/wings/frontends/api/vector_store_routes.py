"""OpenAI's vector stores over collections, for clients that search through OpenAI's package."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from engram.api.body_reading import Route
from engram.api.dependencies import Answering, App, Asker, PathScope, needs
from engram.api.operations import operation, question_operation
from engram.api.schemas import CollectionName
from engram.core.auth.access_keys import READ
from engram.wings.frontends.api.vector_store_schemas import SearchIn, SearchPageOut, VectorStoreOut, VectorStoresOut

router = APIRouter(tags=["frontends"], route_class=Route, prefix="/v1/vector_stores")


@router.get("", **operation("List collections as vector stores", needs(READ, readers="bound")))
def get_vector_stores(
    app: App,
    asker: Asker,
    limit: Annotated[int, Query(ge=1, le=100, description="Stores per page.")] = 20,
    order: Annotated[Literal["asc", "desc"], Query(description="Of the names.")] = "asc",
    after: Annotated[CollectionName | None, Query(description="The page that follows this store.")] = None,
    before: Annotated[CollectionName | None, Query(description="The page that ends before this store.")] = None,
) -> VectorStoresOut:
    """List the collections that your key may read, by name."""
    descending = order == "desc"
    if after is None and before is not None:
        page = app.corpus.ingest.collections(before, limit + 1, asker, descending=not descending)
        return VectorStoresOut.from_service(page[:limit][::-1], has_more=len(page) > limit)
    page = app.corpus.ingest.collections(after, limit + 1, asker, descending=descending)
    return VectorStoresOut.from_service(page[:limit], has_more=len(page) > limit)


@router.get("/{name}", **operation("Read a collection as a vector store", needs(READ, readers="bound"), 404))
def get_vector_store(app: App, scope: PathScope) -> VectorStoreOut:
    """Show a collection's name and number of passages."""
    return VectorStoreOut.from_service(app.corpus.ingest.collection(scope))


@router.post("/{name}/search", response_model=SearchPageOut, **question_operation("Search a vector store"))
async def post_vector_store_search(scope: PathScope, body: SearchIn, app: App, answering: Answering) -> Response:
    """Retrieve as `POST /query` does, in the shape of OpenAI's vector stores. The store names the collection.

    The collection's ranking decides on the order. Scores lie between 0 and 1: how probably each passage is
    evidence, if the collection has some; with ranker `none`, cosines with the question. Filters compare fields of
    the passages' metadata.
    """

    def write_response() -> Response:
        with scope.act_as(body.as_) as acting:
            page = SearchPageOut.from_service(app.answers.question.serve(body.to_query(acting)), body.threshold)
        return Response(page.model_dump_json(), media_type="application/json")

    return await answering.do(write_response)
