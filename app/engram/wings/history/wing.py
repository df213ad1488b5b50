"""Declare the wing, found by the entry point ``history`` of the group ``engram.wings``."""

from engram.composition.container import Application
from engram.composition.wings import Flow, Wing, WingRoutes
from engram.wings.history.parts import HistoryServices
from engram.wings.history.services.past_state import REPLAY


def attach(application: Application) -> HistoryServices:
    """Make the wing's services."""
    return HistoryServices(application.database, application.models, application.hooks)


def load_routes() -> WingRoutes:
    """Import the wing's route."""
    from engram.api.openapi_links import COLLECTION_LINK, WORK
    from engram.wings.history.api import replay_routes

    job = Flow(("post_replay",), {"job_id": "/job_id", **COLLECTION_LINK}, WORK)
    return WingRoutes(routers=(replay_routes.router,), links=(job,))


WING = Wing(
    name="history",
    attach=attach,
    load_routes=load_routes,
    job_handlers={REPLAY: lambda services: services.past},
)
