"""Dify's external knowledge API over a collection."""

from fastapi import APIRouter, Response

from engram.api.body_reading import Route
from engram.api.dependencies import Answering, App, Posted
from engram.api.operations import question_operation
from engram.wings.frontends.api.dify_schemas import RecordsOut, RetrievalIn
from engram.wings.frontends.parts import FrontendServices

router = APIRouter(tags=["frontends"], route_class=Route)


@router.post("/retrieval", response_model=RecordsOut, **question_operation("Retrieve for Dify"))
async def post_retrieval(sent: Posted[RetrievalIn], app: App, answering: Answering) -> Response:
    """Retrieve as `POST /query` does, by Dify's external knowledge API. The knowledge id names the collection.

    The collection's ranking decides on the order. Scores lie between 0 and 1 and fall with the rank: they are the
    cosines of the passages and the question, sorted.
    """

    def write_response() -> Response:
        with sent.scope.act_as(sent.body.as_) as scope:
            answer = app.wing(FrontendServices).long_questions.serve(sent.body.to_query(scope))
        records = RecordsOut.from_service(answer, sent.body.retrieval_setting.score_threshold or 0.0)
        return Response(records.model_dump_json(), media_type="application/json")

    return await answering.do(write_response)
