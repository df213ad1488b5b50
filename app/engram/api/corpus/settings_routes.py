"""The route that changes how a collection serves."""

from fastapi import APIRouter

from engram.api.body_reading import Route
from engram.api.collection_schemas import CollectionOut
from engram.api.corpus.settings_schemas import CollectionPatch
from engram.api.dependencies import App, PathScope, needs
from engram.api.operations import operation
from engram.core.auth.access_keys import ADMIN

router = APIRouter(tags=["serving"], route_class=Route)


@router.patch(
    "/collections/{name}", **operation("Change how a collection serves", needs(ADMIN), 404, reads_json=True)
)
def patch_collection(scope: PathScope, body: CollectionPatch, app: App) -> CollectionOut:
    """Change how a collection serves: without memory, as an experiment, or with room for low-ranked passages.

    A JSON Merge Patch (RFC 7396): what is absent stays, null clears. Queries go by it from the next one on.
    """
    return CollectionOut.model_validate(app.corpus.collection_settings.configure(scope, body.patch()))
