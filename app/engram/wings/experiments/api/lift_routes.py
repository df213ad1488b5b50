"""The route of measured lift."""

from typing import Annotated

from fastapi import APIRouter, Query

from engram.api.body_reading import Route
from engram.api.dependencies import App, PathScope, needs
from engram.api.operations import operation
from engram.api.schemas import Moment, Text
from engram.core.auth.access_keys import AUDIT
from engram.wings.experiments.api.lift_schemas import LiftOut
from engram.wings.experiments.parts import ExperimentServices

router = APIRouter(tags=["serving"], route_class=Route)


@router.get("/collections/{name}/lift", **operation("Compare the arms of a collection", needs(AUDIT), 404))
def get_lift(
    scope: PathScope,
    app: App,
    since: Annotated[Moment | None, Query(alias="from", description="Only queries answered then or later.")] = None,
    before: Annotated[Moment | None, Query(alias="to", description="Only queries answered before.")] = None,
    baseline: Annotated[
        Text | None,
        Query(max_length=100, description="The arm to compare the others with; the experiment's first by default."),
    ] = None,
) -> LiftOut:
    """Compare the arms by the counting verdicts on their queries, with intervals of the differences."""
    service = app.wing(ExperimentServices).lift
    lift = app.auth.reads.on_replica(
        scope.collection.id, lambda: service.lift(scope, since=since, before=before, baseline=baseline)
    )
    return LiftOut.from_service(lift)
