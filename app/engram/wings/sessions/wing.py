"""Declare the wing, found by the entry point ``sessions`` of the group ``engram.wings``."""

from engram.composition.container import Application
from engram.composition.wings import Flow, Wing, WingRoutes
from engram.wings.sessions.parts import SessionServices
from engram.wings.sessions.services.derived_sessions import DerivedSessions
from engram.wings.sessions.services.session_jobs import SESSIONS
from engram.wings.sessions.services.session_observer import SessionObserver
from engram.wings.sessions.storage.session_tables import TABLES


def attach(application: Application) -> SessionServices:
    """Make the wing's services."""
    return SessionServices(
        application.settings,
        application.database,
        application.models,
        application.auth,
        application.answers,
        application.learning,
        lambda: application.jobs.runner,
    )


def load_routes() -> WingRoutes:
    """Import the wing's routes."""
    from engram.api.openapi_links import COLLECTION_LINK
    from engram.wings.sessions.api import session_routes

    sources = ("post_session", "get_session", "post_round")
    targets = ("get_session", "get_events", "post_round", "delete_session", "post_session_feedback")
    return WingRoutes(
        routers=(session_routes.router,),
        links=(Flow(sources, {"session_id": "/session_id", **COLLECTION_LINK}, targets),),
    )


def warm_up(services: SessionServices) -> None:
    """Load the classifier of evidence pools where it is configured, so that a mistake is told at the start."""
    if services.settings.sessions_cross_encoder or services.settings.sessions_stop_weights:
        _ = services.classifier


WING = Wing(
    name="sessions",
    attach=attach,
    load_routes=load_routes,
    make_passage_observer=lambda application: SessionObserver(),
    make_derived_states=lambda _: [DerivedSessions()],
    job_handlers={kind: lambda services: services.session_runner for kind in SESSIONS},
    warm_up=warm_up,
    tables=TABLES,
)
