"""Judges: who gives verdicts, and how far each may move what is learned."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from engram.api.body_reading import Route
from engram.api.dependencies import App, Limit, PathScope, cut_page, needs
from engram.api.operations import operation
from engram.api.schemas import JudgeName, Text
from engram.api.verdict.judge_schemas import JudgeIn, JudgeOut, JudgesOut
from engram.core.auth.access_keys import AUDIT, MODERATE

router = APIRouter(tags=["judges"], route_class=Route)

JudgePath = Annotated[JudgeName, Path(description="The judge's name.")]
After = Annotated[Text | None, Query(max_length=200, description="Judges after this name.")]


@router.get("/collections/{name}/judges", **operation("List judges", needs(AUDIT, readers="bound"), 404))
def get_judges(scope: PathScope, app: App, after: After = None, limit: Limit = 100) -> JudgesOut:
    """List judges by name, with their number of verdicts, their noises and daily caps."""
    judges, last = cut_page(app.learning.judges.page(scope, after or "", limit + 1), limit)
    return JudgesOut(
        collection=scope.collection.name,
        judges=[JudgeOut.from_service(view) for view in judges],
        next_after=last and last.judge.name,
    )


@router.put(
    "/collections/{name}/judges/{judge:text}",
    **operation("Set how far a judge counts", needs(MODERATE), 404, reads_json=True),
)
def put_judge(scope: PathScope, judge: JudgePath, body: JudgeIn, app: App) -> JudgeOut:
    """Set a judge's noises and caps, replacing earlier settings. `{}` restores the defaults.

    What is applied from now on goes by it. What was applied before stays as it was; revoke it to take it back.
    """
    app.auth.quotas.admit(scope.principal, judge)
    return JudgeOut.from_service(app.learning.judges.set(scope, judge, **body.to_settings()))
