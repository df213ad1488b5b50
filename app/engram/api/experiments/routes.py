"""Routes of serving: shadow, experiments, exploration, and the results of arms."""

from typing import Annotated

from fastapi import APIRouter, Query

from engram.api.body_reading import Route
from engram.api.collection_schemas import CollectionOut
from engram.api.dependencies import App, PathScope, needs
from engram.api.experiments.schemas import CollectionPatch, LiftOut
from engram.api.operations import operation
from engram.api.schemas import Moment, Text
from engram.core.auth.access_keys import ADMIN, AUDIT

router = APIRouter(tags=["serving"], route_class=Route)


@router.patch(
    "/collections/{name}", **operation("Change how a collection serves", needs(ADMIN), 404, reads_json=True)
)
def patch_collection(scope: PathScope, body: CollectionPatch, app: App) -> CollectionOut:
    """Change how a collection serves: without memory, as an experiment, or with room for low-ranked passages.

    A JSON Merge Patch (RFC 7396): what is absent stays, null clears. Queries go by it from the next one on.
    """
    return CollectionOut.model_validate(app.collection_settings.configure(scope, body.patch()))


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
    lift = app.reads.on_replica(
        scope.collection.id, lambda: app.lift.lift(scope, since=since, before=before, baseline=baseline)
    )
    return LiftOut.from_service(lift)
