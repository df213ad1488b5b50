"""Reranking by a collection, for clients of Cohere and Jina."""

from functools import partial

from fastapi import APIRouter, Response

from engram.api.body_reading import Route
from engram.api.dependencies import Answering, App, Posted, PostedBody
from engram.api.operations import question_operation
from engram.composition.container import Application
from engram.wings.frontends.api.rerank_schemas import RerankIn, RerankOut
from engram.wings.frontends.parts import FrontendServices

router = APIRouter(tags=["frontends"], route_class=Route)


@router.post("/v1/rerank", response_model=RerankOut, **question_operation("Rank texts"))
async def post_rerank(sent: Posted[RerankIn], app: App, answering: Answering) -> Response:
    """Rank texts for a question, in the shape of Cohere and Jina. The model names the collection.

    A text that the collection has as a passage is ranked with everything that the collection has learned. Other
    texts are ranked by the encoder. The known texts share the places that the encoder gives to them together.
    """
    return await answering.do(partial(_write_reranking, sent, app, "1"))


@router.post(
    "/v2/rerank", response_model=RerankOut, **question_operation("Rank texts, for version 2 of Cohere's clients")
)
async def post_rerank_v2(sent: Posted[RerankIn], app: App, answering: Answering) -> Response:
    """Rank texts for a question, as `POST /v1/rerank` does."""
    return await answering.do(partial(_write_reranking, sent, app, "2"))


def _write_reranking(sent: PostedBody[RerankIn], app: Application, version: str) -> Response:
    with sent.scope.act_as(sent.body.as_) as scope:
        reranking = app.wing(FrontendServices).rerank.rerank(sent.body.to_query(scope), sent.body.texts)
    reranked = RerankOut.from_service(reranking, sent.body, version)
    return Response(reranked.model_dump_json(), media_type="application/json")
