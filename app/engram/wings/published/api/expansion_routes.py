"""Widening: what to send on with a verdict as the expansions of its question."""

from fastapi import APIRouter

from engram.api.body_reading import Route
from engram.api.dependencies import App, Posted
from engram.api.operations import question_operation
from engram.api.schemas import WarningOut
from engram.services.question.query import Fallback
from engram.wings.published.api.expansion_schemas import ExpandIn, ExpandOut, ExpansionOut
from engram.wings.published.parts import published_of

router = APIRouter(tags=["expansions"], route_class=Route)


@router.post("/expand", **question_operation("Widen a question", 502))
def post_expand(sent: Posted[ExpandIn], app: App) -> ExpandOut:
    """Widen a question by expansions, in the shape that `POST /feedback` takes."""
    body = sent.body
    failures: list[Fallback] = []
    with sent.scope.act_as(body.as_) as scope:
        units = published_of(app).expand.expand(scope, body.query, body.methods, body.passages, failures)
    return ExpandOut(
        collection=body.collection,
        query=body.query,
        expansions=[ExpansionOut.model_validate(unit) for unit in units],
        warnings=[WarningOut.model_validate(failure) for failure in failures],
    )
