"""Declare the wing, found by the entry point ``tuning`` of the group ``engram.wings``."""

from engram.composition.container import Application
from engram.composition.wings import Flow, Wing, WingRoutes
from engram.storage.corpus import current_vectors
from engram.wings.tuning.parts import TuningServices
from engram.wings.tuning.services.derived_tuning import DerivedTuning
from engram.wings.tuning.services.tuned_questions import TunedQuestions
from engram.wings.tuning.services.tuning_job import TUNE
from engram.wings.tuning.storage.tuning_tables import TABLES


def attach(application: Application) -> TuningServices:
    """Make the wing's services."""
    return TuningServices(application.database, application.models)


def load_routes() -> WingRoutes:
    """Import the wing's routes."""
    from engram.api.openapi_links import COLLECTION_LINK, WORK
    from engram.wings.tuning.api import tuning_routes

    queued = Flow(("post_tune",), {"job_id": "/job_id", **COLLECTION_LINK}, WORK)
    return WingRoutes(
        routers=(tuning_routes.router,),
        links=(queued,),
        takes_collection=("get_tuning", "post_tune", "put_tuning"),
    )


WING = Wing(
    name="tuning",
    attach=attach,
    load_routes=load_routes,
    make_derived_states=lambda _: [DerivedTuning()],
    make_question_encoder=lambda application: TunedQuestions(
        application.database, lambda: application.models.encoder
    ),
    job_handlers={TUNE: lambda services: services.job},
    sweep=lambda services, should_stop: services.tuning.sweep(should_stop),
    forget=current_vectors.forget_question_generations,
    tables=TABLES,
)
