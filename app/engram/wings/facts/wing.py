"""Declare the wing, found by the entry point ``facts`` of the group ``engram.wings``."""

from engram.composition.container import Application
from engram.composition.wings import Wing, WingRoutes
from engram.wings.facts.parts import FactServices
from engram.wings.facts.services.derived_facts import DerivedFacts
from engram.wings.facts.services.fact_observer import FactObserver
from engram.wings.facts.storage.fact_tables import TABLES


def attach(application: Application) -> FactServices:
    """Make the wing's services."""
    return FactServices(application.settings, application.database, application.models)


def load_routes() -> WingRoutes:
    """Import the wing's routes."""
    from engram.wings.facts.api import fact_routes, graph_routes, openapi_flows

    return WingRoutes(
        routers=(fact_routes.router, graph_routes.router),
        links=openapi_flows.FLOWS,
        takes_collection=openapi_flows.TAKES_COLLECTION,
    )


WING = Wing(
    name="facts",
    attach=attach,
    load_routes=load_routes,
    make_passage_observer=lambda _: FactObserver(),
    make_derived_states=lambda _: [DerivedFacts()],
    tables=TABLES,
)
