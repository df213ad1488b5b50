"""The route of comparisons."""

from fastapi import APIRouter

from engram.api.body_reading import Route
from engram.api.dependencies import App, Posted
from engram.api.operations import question_operation
from engram.wings.experiments.api.comparison_schemas import CompareIn, CompareOut
from engram.wings.experiments.parts import ExperimentServices

router = APIRouter(tags=["explanations"], route_class=Route)


@router.post("/query/compare", **question_operation("Ask under two arms"))
def post_compare(sent: Posted[CompareIn], app: App) -> CompareOut:
    """Answer one question under two arms, by default without and with memory, whatever the collection is set to.

    It leaves no query behind: there is nothing to judge, and nothing is learned from it.
    """
    with sent.scope.act_as(sent.body.as_) as scope:
        return CompareOut.model_validate(app.wing(ExperimentServices).compare.compare(*sent.body.to_queries(scope)))
