"""Declare the wing, found by the entry point ``experiments`` of the group ``engram.wings``."""

from engram.composition.container import Application
from engram.composition.wings import Flow, Wing, WingRoutes
from engram.wings.experiments.parts import ExperimentServices
from engram.wings.experiments.services.experiment_rule import ExperimentRule
from engram.wings.experiments.services.experiment_settings import complete_experiment, complete_exploration


def attach(application: Application) -> ExperimentServices:
    """Make the wing's services."""
    return ExperimentServices(application.settings, application.database, application.auth, application.retrieval)


def load_routes() -> WingRoutes:
    """Import the wing's routes."""
    from engram.api.openapi_links import COLLECTION_LINK, PASSAGE
    from engram.wings.experiments.api import comparison_routes, lift_routes

    compared = Flow(("post_compare",), {"passage_id": "/passages/0/passage_id", **COLLECTION_LINK}, PASSAGE)
    return WingRoutes(
        routers=(comparison_routes.router, lift_routes.router), links=(compared,), takes_collection=("get_lift",)
    )


WING = Wing(
    name="experiments",
    attach=attach,
    load_routes=load_routes,
    question_rule=ExperimentRule(),
    collection_settings={"experiment": complete_experiment, "exploration": complete_exploration},
)
