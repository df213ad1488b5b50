"""Declare the wing, found by the entry point ``published`` of the group ``engram.wings``."""

from collections.abc import Sequence

from engram.composition.container import Application
from engram.composition.wings import Flow, Wing, WingRoutes
from engram.services.question.retriever import Retriever
from engram.services.revocation.derived_state import DerivedState
from engram.services.verdict.learn import BatchEffect, PrepareEffect
from engram.wings.published.core import paper_profile
from engram.wings.published.parts import PublishedServices, published_of
from engram.wings.published.services.derived_keys import DerivedKeys
from engram.wings.published.services.derived_memories import DerivedMemories
from engram.wings.published.services.key_causes import PassageKeyExplainer
from engram.wings.published.services.key_credit_effect import prepare_key_credit
from engram.wings.published.services.learning_setting import complete_setting
from engram.wings.published.services.sentence_memory_effect import SentenceMemoryEffect
from engram.wings.published.storage import memory_hops, memory_log
from engram.wings.published.storage.key_tables import TABLES


def attach(application: Application) -> PublishedServices:
    """Make the wing's services."""
    return PublishedServices(application.database, application.models, application.retrieval.languages)


def make_derived_states(application: Application) -> list[DerivedState]:
    """Make what has memories and keys follow revocations, texts and encoders."""
    return [
        DerivedMemories(),
        DerivedKeys(lambda: published_of(application).attribution, lambda: published_of(application).evolve),
    ]


def make_verdict_effects(application: Application) -> list[PrepareEffect]:
    """Make what moves sentence memories and credits the expansions of verdicts."""

    def prepare_credit(collection_id: int, events: Sequence[int]) -> BatchEffect:
        services = published_of(application)
        return prepare_key_credit(services.attribution, services.evolve, collection_id, events)

    return [lambda *_: SentenceMemoryEffect(published_of(application).memory_rule), prepare_credit]


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
    make_derived_states=make_derived_states,
    make_verdict_effects=make_verdict_effects,
    key_explainer=PassageKeyExplainer(),
    retriever=Retriever(
        paper_profile.PAPER,
        memory_hops.find_linked_sentences,
        memory_hops.find_all_sentences,
        paper_profile.score_passages,
    ),
    sweep=lambda services, _: services.sweep(),
    collection_settings={"published": complete_setting},
    forget=memory_log.forget,
    tables=TABLES,
)
