"""Routes of tuned question encoders."""

from typing import Annotated

from fastapi import APIRouter, Query, Response, status

from engram.api.body_reading import Route
from engram.api.dependencies import App, Limit, PathScope, needs
from engram.api.jobs.routes import build_accepted
from engram.api.jobs.schemas import AcceptedJob
from engram.api.operations import operation
from engram.api.schemas import MAX_ID, CollectionName
from engram.core.auth.access_keys import MODERATE, READ
from engram.wings.tuning.api.tuning_schemas import TuningIn, TuningOut
from engram.wings.tuning.parts import tuning_of

router = APIRouter(tags=["tuning"], route_class=Route)


@router.get("/collections/{name}/tuning", **operation("Read where tuning stands", needs(READ), 404))
def get_tuning(
    scope: PathScope,
    app: App,
    before: Annotated[int | None, Query(ge=1, le=MAX_ID)] = None,
    limit: Limit = 20,
) -> TuningOut:
    """Show which tuned question encoder serves, and every attempt with its decision, the latest first.

    No text of questions or passages is among it.
    """
    return TuningOut.from_service(tuning_of(app).tuning.load_standing(scope, before, limit + 1), limit)


@router.post(
    "/collections/{name}/tune",
    status_code=status.HTTP_202_ACCEPTED,
    **operation("Tune the question encoder now", needs(MODERATE, takes="jobs"), 404, 409),
)
def post_tune(
    response: Response,
    app: App,
    scope: PathScope,
    begin_with: Annotated[
        CollectionName | None,
        Query(description="Learn nothing, and try what this collection learned. It takes `moderate` there, too."),
    ] = None,
) -> AcceptedJob:
    """Start a job that tunes the question encoder by the verdicts so far. It serves if held-out ones accept it."""
    lender = None if begin_with is None else app.auth.access.scope(begin_with, scope.principal, MODERATE)
    return build_accepted(tuning_of(app).tuning.request(scope, lender), scope.collection.name, response)


@router.put(
    "/collections/{name}/tuning",
    **operation("Switch tuning, withdraw or serve a generation", needs(MODERATE), 404, reads_json=True),
)
def put_tuning(scope: PathScope, body: TuningIn, app: App) -> TuningOut:
    """Switch the tuning of the collection, withdraw a generation, have another one serve. What is absent stays.

    All of it is done in this order, or nothing is.
    """
    service = tuning_of(app).tuning
    service.change(scope, is_on=body.enabled, withdrawn=body.withdraw, serving=body.serving)
    app.auth.reads.note_write(scope.collection.id)
    return TuningOut.from_service(service.load_standing(scope, limit=21), 20)
