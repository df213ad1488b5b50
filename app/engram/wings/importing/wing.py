"""Declare the wing, found by the entry point ``importing`` of the group ``engram.wings``."""

from engram.composition.container import Application
from engram.composition.wings import Flow, Wing, WingRoutes
from engram.wings.importing.parts import ImportingServices


def attach(application: Application) -> ImportingServices:
    """Make the wing's services."""
    return ImportingServices(application.settings, application.database, application.corpus)


def load_routes() -> WingRoutes:
    """Import the wing's routes."""
    from engram.api.openapi_links import COLLECTION_LINK, SETTINGS, WORK
    from engram.wings.importing.api import document_routes, knowledge_routes
    from engram.wings.importing.api.knowledge_schemas import CleanupIn, SyncManifestIn

    source = ("post_documents",)
    links = Flow(source, {"job_id": "/job_id", **COLLECTION_LINK}, WORK), Flow(source, COLLECTION_LINK, SETTINGS)
    knowledge = ("post_file",), {"file_id": "/id"}, ("get_file_status",)
    return WingRoutes(
        routers=(document_routes.router, knowledge_routes.router),
        links=(*links, Flow(*knowledge)),
        takes_collection=("get_knowledge", "get_knowledge_files", "post_knowledge_reset"),
        bodies=(SyncManifestIn, CleanupIn),
    )


WING = Wing(name="importing", attach=attach, load_routes=load_routes)
