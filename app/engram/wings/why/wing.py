"""Declare the wing, found by the entry point ``why`` of the group ``engram.wings``."""

from engram.composition.container import Application
from engram.composition.wings import Flow, Wing, WingRoutes
from engram.wings.why.parts import WhyServices
from engram.wings.why.services.answer_explainer import AnswerExplainer


def attach(application: Application) -> WhyServices:
    """Make the wing's services."""
    return WhyServices(application.database, application.models, application.retrieval)


def load_routes() -> WingRoutes:
    """Import the wing's routes."""
    from engram.api.openapi_links import COLLECTION_LINK, IN_QUERY, LISTED_VERDICT, VERDICT_SOURCES
    from engram.wings.why.api import gap_routes, memory_routes, overview_routes

    sentence, memory = "sentence_id", ("get_sentence_memory",)
    preview = ("get_preview",)
    return WingRoutes(
        routers=(memory_routes.router, overview_routes.router, gap_routes.router),
        links=(
            Flow(
                ("post_query", "get_query"),
                {sentence: "/passages/0/sentences/0/sentence_id", **COLLECTION_LINK},
                memory,
            ),
            Flow(("get_passage",), {sentence: "/sentences/0/sentence_id", **IN_QUERY}, memory),
            Flow(VERDICT_SOURCES, {"feedback_id": "/feedback_id", **COLLECTION_LINK}, preview),
            Flow(("list_feedback",), LISTED_VERDICT, preview),
        ),
        takes_collection=("get_learned", "get_gaps"),
    )


WING = Wing(
    name="why",
    attach=attach,
    load_routes=load_routes,
    make_explainer=lambda application: AnswerExplainer(lambda: application.wing(WhyServices).influences),
)
