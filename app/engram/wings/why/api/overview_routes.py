"""Read-only overviews: learning of a collection, and effects of a revocation."""

from typing import Annotated

from fastapi import APIRouter, Query

from engram.api.dependencies import App, PathScope, VerdictAt, needs
from engram.api.operations import operation
from engram.api.path_converters import FeedbackRoute
from engram.api.schemas import Moment
from engram.core.auth.access_keys import AUDIT
from engram.wings.why.api.overview_schemas import LearnedOut, PreviewOut
from engram.wings.why.parts import why_of

router = APIRouter(route_class=FeedbackRoute)


@router.get(
    "/collections/{name}/learned",
    tags=["explanations"],
    **operation("Read what was learned", needs(AUDIT, readers="bound"), 404),
)
def get_learned(
    app: App,
    scope: PathScope,
    until: Annotated[
        Moment | None,
        Query(description="What was learned by then; absent: by now.", examples=["2026-05-01T12:00:00Z"]),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1_000, description="Memories, those moved last.")] = 100,
) -> LearnedOut:
    """Count the memories that verdicts moved, show their certainty over time, and list the latest.

    Only verdicts that still count are looked at: what was revoked since is left out of the past as well.
    """
    return LearnedOut.from_service(
        scope.collection.name, why_of(app).learned.summarise_learning(scope, until, limit)
    )


@router.get(
    "/feedback/{feedback_id}/without",
    tags=["feedback"],
    **operation("Preview a revocation", needs(AUDIT, readers="bound"), 404),
)
def get_preview(app: App, at: VerdictAt) -> PreviewOut:
    """Preview a revocation: each state that the verdict moved, as it is and as it would be.

    Nothing is revoked; `DELETE /feedback/{feedback_id}` does that.
    """
    return PreviewOut.from_service(
        at.scope.collection.name, why_of(app).learned.preview_revocation(at.scope, at.id)
    )
