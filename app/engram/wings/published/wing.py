"""Declare the wing, found by the entry point ``published`` of the group ``engram.wings``."""

from engram.composition.container import Application
from engram.composition.wings import Flow, Wing, WingRoutes
from engram.wings.published.parts import PublishedServices, published_of
from engram.wings.published.services.derived_keys import DerivedKeys
from engram.wings.published.services.key_causes import PassageKeyExplainer
from engram.wings.published.services.key_credit_effect import KeyCreditEffect
from engram.wings.published.services.key_settings import complete_passage_keys
from engram.wings.published.storage.key_tables import TABLES


def attach(application: Application) -> PublishedServices:
    """Make the wing's services."""
    return PublishedServices(application.database, application.models, application.retrieval.languages)


def make_derived_state(application: Application) -> DerivedKeys:
    """Make what has keys follow revocations, base keys and encoders."""
    return DerivedKeys(lambda: published_of(application).attribution, lambda: published_of(application).evolve)


def make_verdict_effect(application: Application) -> KeyCreditEffect:
    """Make what credits the expansions of verdicts."""
    return KeyCreditEffect(lambda: published_of(application).attribution, lambda: published_of(application).evolve)


def load_routes() -> WingRoutes:
    """Import the wing's routes."""
    from engram.api.openapi_links import COLLECTION_LINK, IN_PATH
    from engram.wings.published.api import expansion_routes, key_routes

    return WingRoutes(
        routers=(expansion_routes.router, key_routes.router),
        links=(
            Flow(
                ("post_query", "get_query"),
                {"passage_id": "/passages/0/passage_id", **COLLECTION_LINK},
                ("get_key",),
            ),
            Flow(("get_passages",), {"passage_id": "/passages/0/id", **IN_PATH}, ("get_key",)),
            Flow(
                ("get_generations",), {"generation": "/generations/0/number", **COLLECTION_LINK}, ("post_rollback",)
            ),
        ),
        takes_collection=("get_keys", "get_generations", "post_evolve"),
    )


WING = Wing(
    name="published",
    attach=attach,
    load_routes=load_routes,
    make_derived_state=make_derived_state,
    make_verdict_effect=make_verdict_effect,
    key_explainer=PassageKeyExplainer(),
    sweep=lambda services, _: services.sweep(),
    collection_settings={"passage_keys": complete_passage_keys},
    tables=TABLES,
)
