"""Routes of the questions that a collection could not answer."""

from typing import Annotated

from fastapi import APIRouter, Query

from engram.api.body_reading import Route
from engram.api.dependencies import App, PathScope, needs
from engram.api.operations import operation
from engram.core.auth.access_keys import AUDIT
from engram.wings.why.api.gap_schemas import GapsOut
from engram.wings.why.parts import why_of

router = APIRouter(route_class=Route)


@router.get(
    "/collections/{name}/gaps",
    tags=["explanations"],
    **operation("List what could not be answered", needs(AUDIT, readers="bound"), 404, limited=True),
)
def get_gaps(
    app: App,
    scope: PathScope,
    days: Annotated[int, Query(ge=1, le=3_650, description="Queries of so many days.")] = 30,
    limit: Annotated[int, Query(ge=1, le=200, description="Needs at most.")] = 50,
) -> GapsOut:
    """List needs that were not met: questions below the collection's level of sufficiency, or judged as not enough.

    Questions of the same need are one. It is made of stored queries and verdicts, and gone with them.
    """
    return GapsOut.combine(why_of(app).gaps.find(scope, days, limit), collection=scope.collection.name)
