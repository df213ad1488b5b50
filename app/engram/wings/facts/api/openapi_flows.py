"""Links of the OpenAPI document from the operations of facts."""

from engram.api.openapi_links import COLLECTION_LINK, IN_QUERY
from engram.composition.wings import Flow

_ENTITY = ("get_entity", "post_merge", "post_split")
FLOWS = (
    Flow(
        ("post_facts", "post_facts_revise", "post_facts_search", "get_entity"),
        {"fact_id": "/facts/0/fact_id", **COLLECTION_LINK},
        ("get_fact",),
    ),
    Flow(
        ("post_facts", "post_facts_revise"),
        {"event_id": "/events/0/event_id", **COLLECTION_LINK},
        ("delete_fact_event",),
    ),
    Flow(("get_fact",), {"event_id": "/history/0/event_id", **IN_QUERY}, ("delete_fact_event",)),
    Flow(("get_fact",), {"entity_id": "/object_entity_id", **IN_QUERY}, _ENTITY),
    Flow(("post_facts_search",), {"entity_id": "/starts/0/entity_id", **COLLECTION_LINK}, _ENTITY),
    Flow(
        ("get_predicates", "post_count"),
        {"predicate": "/predicates/0/predicate", **COLLECTION_LINK},
        ("put_predicate",),
    ),
)
TAKES_COLLECTION = ("get_predicates",)
"""What a collection's name is enough for."""
