"""What the wing declares, found by the entry point ``importing`` of the group ``engram.wings``."""

from engram.composition.container import Application
from engram.composition.wings import Flow, Wing, WingRoutes
from engram.wings.importing.parts import ImportingServices


def attach(application: Application) -> ImportingServices:
    """Make the wing's services."""
    return ImportingServices(application.settings)


def load_routes() -> WingRoutes:
    """Import the wing's routes."""
    from engram.api.openapi_links import COLLECTION_LINK, SETTINGS, WORK
    from engram.wings.importing.api import document_routes

    source = ("post_documents",)
    links = Flow(source, {"job_id": "/job_id", **COLLECTION_LINK}, WORK), Flow(source, COLLECTION_LINK, SETTINGS)
    return WingRoutes(routers=(document_routes.router,), links=links)


WING = Wing(name="importing", attach=attach, load_routes=load_routes)
