"""Another encoder for a collection."""

from fastapi import APIRouter, Response, status
from pydantic import ConfigDict, Field

from engram.api.body_reading import Route
from engram.api.dependencies import App, OptionalKey, PathScope, needs
from engram.api.jobs.routes import build_accepted
from engram.api.jobs.schemas import AcceptedJob
from engram.api.operations import operation
from engram.api.schemas import Model, Text
from engram.core.auth.access_keys import ADMIN

router = APIRouter(tags=["collections"], route_class=Route)


class ReembedIn(Model):
    """Encoder to move a collection to."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "all-MiniLM-L6-v2"}]})

    model: Text | None = Field(
        default=None,
        min_length=1,
        max_length=200,
        description="One that the service runs, by name; by default that which the collection is not of.",
    )


@router.post(
    "/collections/{name}/reembed",
    status_code=status.HTTP_202_ACCEPTED,
    **operation(
        "Give a collection the vectors of another encoder", needs(ADMIN, takes="jobs"), 404, 409, reads_json=True
    ),
)
def post_reembed(body: ReembedIn, response: Response, app: App, scope: PathScope, key: OptionalKey) -> AcceptedJob:
    """Start a job that embeds everything by another encoder. Queries use the old vectors meanwhile.

    Queries, passages and verdicts go on meanwhile. What verdicts taught is replayed along the new vectors. The old
    ones stay: the same request for the encoder before goes back to them.
    """
    return build_accepted(app.corpus.reembed.request(scope, body.model, key), scope.collection.name, response)


@router.delete(
    "/collections/{name}/reembed",
    status_code=status.HTTP_202_ACCEPTED,
    **operation("Give up vectors that do not serve", needs(ADMIN, takes="jobs"), 400, 404, 409),
)
def delete_reembed(response: Response, app: App, scope: PathScope, key: OptionalKey) -> AcceptedJob:
    """Start a job that removes all vectors that do not serve. There is no quick way back then."""
    return build_accepted(app.corpus.reembed.request_drop(scope, key), scope.collection.name, response)
