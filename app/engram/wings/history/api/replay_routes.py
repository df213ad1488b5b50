"""Bringing back what a collection had learned at a past moment."""

from fastapi import APIRouter, Response, status

from engram.api.body_reading import Route
from engram.api.dependencies import App, OptionalKey, PathScope, needs
from engram.api.jobs.routes import build_accepted
from engram.api.jobs.schemas import AcceptedJob
from engram.api.operations import operation
from engram.core.auth.access_keys import ADMIN
from engram.wings.history.api.replay_schemas import ReplayIn
from engram.wings.history.parts import HistoryServices

router = APIRouter(tags=["collections"], route_class=Route)


@router.post(
    "/collections/{name}/replay",
    status_code=status.HTTP_202_ACCEPTED,
    **operation("Bring back a past moment", needs(ADMIN, takes="jobs"), 404, 409, reads_json=True),
)
def post_replay(body: ReplayIn, response: Response, app: App, scope: PathScope, key: OptionalKey) -> AcceptedJob:
    """Start a job that makes a collection of what this one had learned at a past moment.

    It holds the same passages and the verdicts that counted then, and serves without memory until it is switched
    live. The collection itself is left alone.
    """
    if body.into is not None:
        app.auth.access.prepare_opening(body.into, scope.principal, ADMIN)
    job_id = app.wing(HistoryServices).past.request(scope, body.until, body.into, key)
    return build_accepted(job_id, scope.collection.name, response)
