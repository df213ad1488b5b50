"""Declare the wing, found by the entry point ``frontends`` of the group ``engram.wings``."""

from engram.composition.container import Application
from engram.composition.wings import Wing, WingRoutes
from engram.wings.frontends.parts import FrontendServices
from engram.wings.frontends.services.derived_pulls import DerivedPulls
from engram.wings.frontends.storage.pull_tables import pulled_score


def attach(application: Application) -> FrontendServices:
    """Make the wing's services."""
    return FrontendServices(application.settings, application.database, application.models, application.answers)


def load_routes() -> WingRoutes:
    """Import the wing's routes."""
    from engram.wings.frontends.api import (
        chat_routes,
        dify_routes,
        openapi_flows,
        pull_routes,
        rerank_routes,
        vector_store_routes,
    )
    from engram.wings.frontends.api.dialects import DIALECTS

    modules = chat_routes, dify_routes, vector_store_routes, rerank_routes, pull_routes
    return WingRoutes(
        routers=[module.router for module in modules],
        links=openapi_flows.FLOWS,
        takes_collection=openapi_flows.TAKES_COLLECTION,
        dialects=DIALECTS,
    )


WING = Wing(
    name="frontends",
    attach=attach,
    load_routes=load_routes,
    tables=(pulled_score,),
    make_derived_states=lambda _: [DerivedPulls()],
)
