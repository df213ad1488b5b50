"""Widening: what to send on with a verdict as the expansions of its question."""

from typing import Annotated

from fastapi import APIRouter, Depends

from engram.api.body_reading import Route
from engram.api.dependencies import App, PostedBody, json_body, limit_time, needs, read_body
from engram.api.problems import responses
from engram.api.retrieval.expansion_schemas import ExpandIn, ExpandOut, ExpansionOut, WarningOut
from engram.core.auth.access_keys import QUERY
from engram.services.retrieval.fallbacks import Fallback

router = APIRouter(tags=["expansions"], route_class=Route)


@router.post(
    "/expand",
    response_model=ExpandOut,
    dependencies=[needs(QUERY, takes="queries"), Depends(json_body), Depends(limit_time)],
    responses=responses(400, 404, 413, 415, 422, 502, 503, embeds=True),
    summary="Widen a question",
)
def post_expand(sent: Annotated[PostedBody[ExpandIn], Depends(read_body(ExpandIn))], app: App) -> ExpandOut:
    """Pieces of text that widen the question, in the shape that `POST /feedback` takes as `expansions`."""
    body = sent.body
    failures: list[Fallback] = []
    units = app.expand.expand(sent.scope, body.query, body.methods, body.passages, failures)
    return ExpandOut(
        collection=body.collection,
        query=body.query,
        expansions=[ExpansionOut.model_validate(unit) for unit in units],
        warnings=[WarningOut.model_validate(failure) for failure in failures],
    )
