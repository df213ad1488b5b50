"""The ledger of pulls: which scores of other products were sent as ratings (integrations/pull)."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from engram.api.body_reading import Route
from engram.api.dependencies import App, Limit, PathScope, cut_page, needs
from engram.api.operations import operation
from engram.api.schemas import Moment, Text
from engram.core.auth.access_keys import JUDGE
from engram.wings.frontends.api.pull_schemas import PulledScoreOut, PulledScoresIn, PulledScoresOut, StoredScoresOut
from engram.wings.frontends.parts import FrontendServices

router = APIRouter(tags=["feedback"], route_class=Route)

SourceName = Annotated[
    str,
    Path(max_length=200, pattern=r"^[a-z0-9][a-z0-9._@:-]*$", description="The name of the pull."),
]


@router.get(
    "/collections/{name}/pulls/{source}", **operation("List pulled scores", needs(JUDGE, readers="bound"), 404)
)
def get_pulled_scores(
    scope: PathScope,
    source: SourceName,
    app: App,
    since: Annotated[Moment | None, Query(alias="from", description="Only scores given then or later.")] = None,
    after: Annotated[Text | None, Query(max_length=512, description="Scores after this id.")] = None,
    limit: Limit = 100,
) -> PulledScoresOut:
    """List the scores that your pull of this name sent as ratings, and those that it revoked."""
    rows = app.wing(FrontendServices).pulls.page(scope, source, since=since, after=after or "", limit=limit + 1)
    scores, last = cut_page(rows, limit)
    return PulledScoresOut(
        collection=scope.collection.name,
        source=source,
        scores=[PulledScoreOut.model_validate(score) for score in scores],
        next_after=last and last.score_id,
    )


@router.put(
    "/collections/{name}/pulls/{source}",
    **operation("Store pulled scores", needs(JUDGE, readers="bound"), 404, reads_json=True),
)
def put_pulled_scores(scope: PathScope, source: SourceName, body: PulledScoresIn, app: App) -> StoredScoresOut:
    """Record what a pull sent of each score. The next pull sends only what changed. Learns nothing itself."""
    app.wing(FrontendServices).pulls.put(scope, source, body.to_ledger())
    return StoredScoresOut(collection=scope.collection.name, source=source, stored=len(body.scores))
