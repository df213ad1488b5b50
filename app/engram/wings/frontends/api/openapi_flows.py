"""Links from the wing's operations, for the OpenAPI document."""

from engram.api.openapi_links import COLLECTION_LINK, COLLECTION_PARAMETER, QUERY_TARGETS, SETTINGS
from engram.composition.wings import Flow

PULLS = ("get_pulled_scores", "put_pulled_scores")

FLOWS = (
    Flow(("post_vector_store_search",), {"query_id": "/query_id"}, QUERY_TARGETS),
    Flow(("post_rerank", "post_rerank_v2"), {"query_id": "/id"}, QUERY_TARGETS),
    Flow(("post_retrieval",), {"query_id": "/records/0/metadata/query_id"}, QUERY_TARGETS),
    Flow(("post_chat",), {"query_id": "/engram/query_id"}, QUERY_TARGETS),
    Flow(("get_vector_stores",), {COLLECTION_PARAMETER: "/data/0/id"}, SETTINGS),
    Flow(PULLS, {"source": "/source", **COLLECTION_LINK}, PULLS),
)
TAKES_COLLECTION = ("get_vector_store", "post_vector_store_search")
"""What a collection's name is enough for."""
