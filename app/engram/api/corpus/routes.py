"""Passages and collections."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response, status
from starlette.concurrency import run_in_threadpool

from engram.api.collection_schemas import CollectionOut
from engram.api.corpus.passage_bodies import receive_document, receive_lines
from engram.api.corpus.schemas import (
    CollectionsOut,
    ListedPassageOut,
    PassageCountIn,
    PassageCountOut,
    PassageOut,
    PassagesOut,
    ReaderExplanationOut,
    ReadersIn,
    ReadersOut,
    RekeyIn,
)
from engram.api.dependencies import (
    App,
    Asker,
    Limit,
    Need,
    OptionalKey,
    PathScope,
    QueryScope,
    build_opener,
    cut_page,
    needs,
)
from engram.api.jobs.routes import build_accepted
from engram.api.jobs.schemas import AcceptedJob
from engram.api.operations import operation
from engram.api.passage_source_schema import PassageSourceOut
from engram.api.path_converters import ExternalIdPath, PassageRoute, path_text
from engram.api.schemas import (
    DEFAULT_COLLECTION,
    CollectionName,
    EncoderName,
    ExternalId,
    OnBehalfOfQuery,
    Storable,
)
from engram.context.errors import UnsupportedMediaTypeError
from engram.core.auth.access_keys import ADMIN, INGEST, READ
from engram.core.text.passage_source import read_source
from engram.services.corpus.passage_intake import PassageReception

router = APIRouter(tags=["passages"], route_class=PassageRoute)

NamedCollection = Annotated[CollectionName | None, Query(alias="collection", description="The collection's name.")]
JSON_TYPE = "application/json"
NDJSON_TYPES = ("application/x-ndjson", "application/ndjson", "application/jsonl")

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
    openapi_extra=BODY,
    **operation("Ingest passages", needs(INGEST), 400, 404, 413, 415, embeds=True),
)
async def post_passages(
    request: Request,
    response: Response,
    app: App,
    asker: Asker,
    need: Need,
    key: OptionalKey,
    collection: NamedCollection = None,
    encoder: EncoderName = None,
) -> AcceptedJob:
    """Take passages as JSON (up to 1,000) or as streamed NDJSON of any length; a job ingests them.

    A JSON document is taken whole or not at all. Of NDJSON, bad lines are reported on the job by number and
    the rest go on. If the body does not arrive whole, none of it is taken; if the collection is deleted while it
    arrives, the answer is 404. The collection is named in the query, or in a JSON document; `default` without.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in (JSON_TYPE, *NDJSON_TYPES):
        raise UnsupportedMediaTypeError(f"Send {JSON_TYPE} or {NDJSON_TYPES[0]}.")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedMediaTypeError("Compressed bodies are not read; send the body as it is.")

    opening = await build_opener(app, asker, need)

    def receive(name: str | None) -> PassageReception:
        opened = replace(opening(name or DEFAULT_COLLECTION), encoder=encoder)
        return app.corpus.ingest.receive(opened, key)

    if media_type == JSON_TYPE:
        if collection is not None:
            opening(collection)  # refused before its body is read
        reception = await receive_document(request, collection, receive)
    else:
        reception = receive(collection)
        await receive_lines(request, reception)
    return build_accepted(await run_in_threadpool(reception.finish), reception.collection, response)


@router.get("/passages/{passage_id:text}", **operation("Read a passage", needs(READ, readers="bound"), 404))
def get_passage(
    passage_id: ExternalIdPath, app: App, scope: QueryScope, on_behalf_of: OnBehalfOfQuery = None
) -> PassageOut:
    """Show a passage with its sentences and their ids; `as` takes the scope `act-as`."""
    with scope.act_as(on_behalf_of) as acted:
        passage, sentences = app.corpus.ingest.passage(acted, path_text(passage_id))
    return PassageOut(
        id=passage.external_id,
        title=passage.title,
        text=passage.text,
        language=passage.language,
        metadata=passage.metadata,
        source=PassageSourceOut.model_validate(read_source(passage, scope.collection.link_template)),
        sentences=sentences,
    )


@router.patch(
    "/passages/{passage_id:text}",
    **operation("Change who may read a passage", needs(INGEST, readers="bound"), 404, reads_json=True),
)
def patch_passage(passage_id: ExternalIdPath, body: ReadersIn, app: App, scope: QueryScope) -> ReadersOut:
    """Change who may read a passage that you see, from the next query on; nothing is embedded."""
    changed = app.corpus.readers.set_of_passage(scope, path_text(passage_id), body.readers)
    app.auth.reads.note_write(scope.collection.id)
    return ReadersOut(collection=scope.collection.name, readers=None if changed is None else list(changed))


@router.get("/collections/{name}/readers", **operation("Explain who sees a passage", needs(ADMIN), 404))
def get_readers(
    app: App,
    scope: PathScope,
    passage_id: Annotated[ExternalId, Query(description="The passage.")],
    on_behalf_of: OnBehalfOfQuery = None,
) -> ReaderExplanationOut:
    """Say whether somebody sees a passage, and why."""
    return ReaderExplanationOut.model_validate(app.corpus.readers.explain(scope, passage_id, on_behalf_of or ()))


@router.delete(
    "/passages/{passage_id:text}",
    status_code=status.HTTP_204_NO_CONTENT,
    **operation("Remove a passage", needs(INGEST, readers="bound"), 404),
)
def delete_passage(passage_id: ExternalIdPath, app: App, scope: QueryScope) -> None:
    """Remove a passage and everything that only it held: sentences, memories, entities."""
    app.corpus.ingest.delete_passage(scope, path_text(passage_id))
    app.auth.reads.note_write(scope.collection.id)


@router.get("/collections", **operation("List collections", needs(READ, readers="bound")))
async def get_collections(
    request: Request,
    app: App,
    asker: Asker,
    after: Annotated[CollectionName | None, Query()] = None,
    limit: Limit = 100,
) -> CollectionsOut:
    """List the collections that your key may read, by name, those in other databases included."""
    here = await run_in_threadpool(app.corpus.ingest.collections, after, limit + 1, asker)
    routes = await run_in_threadpool(app.auth.access.list_routes, asker)
    later = (name for name in routes if after is None or name > after)
    names, last = cut_page(sorted([*(one.name for one in here), *later])[: limit + 1], limit)
    described: dict[str, Any] = {one.name: CollectionOut.from_service(one) for one in here}
    described |= await request.app.state.forwarding.describe(
        request, {name: routes[name] for name in names if name in routes}
    )
    listed = [(name, described[name]) for name in names if name in described]
    return CollectionsOut(
        collections=[body for _, body in listed if body is not None],
        out_of_reach=[name for name, body in listed if body is None],
        next_after=last,
    )


@router.get("/collections/{name}", **operation("Read a collection", needs(READ, readers="bound"), 404))
def get_collection(app: App, scope: PathScope) -> CollectionOut:
    """Show the contents and settings of a collection; of passages, those that you may read."""
    return CollectionOut.from_service(app.corpus.ingest.collection(scope))


@router.get(
    "/collections/{name}/passages", **operation("List a collection's passages", needs(READ, readers="bound"), 404)
)
def get_passages(
    app: App, scope: PathScope, after: Annotated[Storable | None, Query(max_length=512)] = None, limit: Limit = 100
) -> PassagesOut:
    """List passages in the order of their ids, without their sentences."""
    page, last = cut_page(app.corpus.ingest.passages(scope, after, limit + 1), limit)
    return PassagesOut(
        passages=[
            ListedPassageOut.combine(
                passage, id=passage.external_id, source=read_source(passage, scope.collection.link_template)
            )
            for passage in page
        ],
        next_after=last and last.external_id,
    )


@router.post(
    "/collections/{name}/passages:count",
    **operation("Count passages", needs(READ, readers="bound"), 404, reads_json=True, limited=True),
)
def post_passage_count(body: PassageCountIn, app: App, scope: PathScope) -> PassageCountOut:
    """Count the passages that you see by a filter, grouped by the values of a metadata field."""
    with scope.act_as(body.as_) as acted:
        counted = app.corpus.counts.count(acted, body.filter, body.by, body.limit)
        return PassageCountOut.combine(counted, collection=acted.collection.name)


@router.post(
    "/collections/{name}/rekey",
    status_code=status.HTTP_202_ACCEPTED,
    **operation(
        "Make a collection's keys anew", needs(ADMIN, takes="jobs"), 404, 409, reads_json=True, embeds=True
    ),
)
def post_rekey(body: RekeyIn, response: Response, app: App, scope: PathScope, key: OptionalKey) -> AcceptedJob:
    """Start a job that rebuilds all passage keys from another part of each passage.

    Queries are answered by the old keys until all new ones are there and take their place at once. Passages sent
    meanwhile are ingested after that. Sentences, entities and what verdicts taught about them stay as they are.

    If the keys are made of this part already, the job only analyses words anew, of passages whose terms an earlier
    version of Engram made.
    """
    return build_accepted(app.corpus.rekey.request(scope, body.key_building, key), scope.collection.name, response)


@router.delete(
    "/collections/{name}",
    status_code=status.HTTP_204_NO_CONTENT,
    **operation("Remove a collection", needs(ADMIN), 404),
)
def delete_collection(scope: PathScope, app: App) -> None:
    """Remove the collection with everything in it, learned state and its log included."""
    app.corpus.ingest.delete_collection(scope)
