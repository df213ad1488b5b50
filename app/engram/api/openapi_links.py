"""`links` of the OpenAPI document: values of answers, and the operations that take them.

Every route may be named here by the values that its answer holds; which of them an operation takes follows from its
own parameters and body, so that a link cannot say what the operation does not know.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from engram.composition.wings import Flow

BODY = "$response.body#"
COLLECTION_PARAMETER = "collection"
SETTINGS = (
    "get_collection", "patch_collection", "get_passages", "post_passage_count", "get_documents", "get_jobs",
    "get_judges", "post_reembed", "delete_reembed", "post_rekey", "post_query", "get_suggestions",
    "list_feedback", "delete_collection", "post_manifest", "get_erasures", "delete_queries",
)  # fmt: skip
"""What a collection's name is enough for, beside operations of wings."""


IN_QUERY = {COLLECTION_PARAMETER: "$request.query.collection"}
IN_PATH = {COLLECTION_PARAMETER: "$request.path.name"}
COLLECTION_LINK = {COLLECTION_PARAMETER: "/collection"}
QUERY_TARGETS = ("get_query", "post_feedback", "delete_query")
VERDICT_SOURCES = ("post_feedback", "get_feedback", "delete_feedback", "post_retry_one")
VERDICT_TARGETS = ("get_feedback", "delete_feedback", "post_retry_one")
LISTED_VERDICT = {"feedback_id": "/feedback/0/feedback_id", COLLECTION_PARAMETER: "/feedback/0/collection"}
WORK = ("get_job", "post_cancel")
ERASURES = ("delete_query", "delete_queries", "delete_judge", "delete_principal")
PASSAGE = ("get_passage", "delete_passage", "patch_passage", "get_readers")

FLOWS = (
    Flow(("post_query", "get_query"), {"query_id": "/query_id", **COLLECTION_LINK}, QUERY_TARGETS),
    Flow(("post_query", "get_query"), {"trace_id": "/trace_id", **COLLECTION_LINK}, ("get_queries",)),
    Flow(("get_queries",), {"query_id": "/queries/0/query_id", **COLLECTION_LINK}, QUERY_TARGETS),
    Flow(
        ("post_query", "get_query"),
        {"passage_id": "/passages/0/passage_id", **COLLECTION_LINK},
        PASSAGE,
    ),
    Flow(
        ("post_queries",),
        {"query_id": "/answers/0/answer/query_id", COLLECTION_PARAMETER: "/answers/0/answer/collection"},
        QUERY_TARGETS,
    ),
    Flow(
        VERDICT_SOURCES,
        {"feedback_id": "/feedback_id", **COLLECTION_LINK},
        VERDICT_TARGETS,
    ),
    Flow(
        ("post_feedback", "get_feedback"),
        {"judge": "/judge", **COLLECTION_LINK},
        ("post_revoke", "put_judge", "post_retry"),
    ),
    Flow(("list_feedback",), LISTED_VERDICT, VERDICT_TARGETS),
    Flow(
        ("post_passages", "post_reembed", "post_rekey", "post_revoke", *WORK, *ERASURES),
        {"job_id": "/job_id", **COLLECTION_LINK},
        WORK,
    ),
    Flow(("post_passages",), COLLECTION_LINK, SETTINGS),
    Flow(("get_jobs",), {"job_id": "/jobs/0/job_id", COLLECTION_PARAMETER: "/jobs/0/collection"}, WORK),
    Flow(("get_collections",), {COLLECTION_PARAMETER: "/collections/0/name"}, SETTINGS),
    Flow(("get_passages",), {"passage_id": "/passages/0/id", **IN_PATH}, PASSAGE),
    Flow(
        ("get_documents",),
        {"source": "/documents/0/source", **COLLECTION_LINK},
        ("delete_document", "patch_document"),
    ),
    Flow(
        ("get_judges",),
        {"judge": "/judges/0/judge", **IN_PATH},
        ("put_judge", "delete_judge", "post_revoke", "post_retry"),
    ),
    Flow(("get_judges",), {"principal": "/judges/0/judge", **IN_PATH}, ("delete_principal",)),
    Flow(("post_access_key",), {"key_id": "/key_id"}, ("post_rotate_access_key", "delete_access_key")),
    Flow(("post_rotate_access_key",), {"key_id": "/key_id"}, ("delete_access_key",)),
)


def link(document: dict[str, Any], flows: Iterable[Flow] = FLOWS, takes_collection: Iterable[str] = ()) -> None:
    """Add the links to the operations of a document.

    Args:
        takes_collection: operations of wings that a collection's name is enough for.

    Raises:
        ValueError: an operation is not there, or takes nothing of what a link would give it.
    """
    links_by_operation = {
        operation["operationId"]: (path, operation)
        for path, operations in document["paths"].items()
        for operation in operations.values()
    }
    schemas = document["components"]["schemas"]
    for flow in flows:
        targets = (*SETTINGS, *takes_collection) if flow.targets == SETTINGS else flow.targets
        for source in flow.sources:
            if unknown := {source, *targets} - links_by_operation.keys():
                raise ValueError(f"There is no operation {', '.join(sorted(unknown))}.")
            for status, response in links_by_operation[source][1]["responses"].items():
                if status.startswith("2"):
                    links = response.setdefault("links", {})
                    for target in targets:
                        _add(links, target, _to(*links_by_operation[target], flow, schemas))


def _add(links: dict[str, Any], target: str, link_object: dict[str, Any]) -> None:
    """Under the target's name, and a number where it has one already."""
    name = next(name for name in _generate_names(target) if name not in links)
    links[name] = {"operationId": target, **link_object}


def _generate_names(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}_{number}"
        number += 1


def _to(path: str, operation: Mapping[str, Any], flow: Flow, schemas: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters and the part of the body that the operation takes of the flow's values."""
    values = {name: value if value.startswith("$") else f"{BODY}{value}" for name, value in flow.values.items()}
    if COLLECTION_PARAMETER in values and "{name}" in path:
        values["name"] = values[COLLECTION_PARAMETER]
    parameter_names = {
        parameter["name"] for parameter in operation.get("parameters", []) if parameter["in"] != "header"
    }
    fields = _fields(operation, schemas)
    parameters = {name: value for name, value in values.items() if name in parameter_names}
    body = {name: value for name, value in values.items() if name in fields and name not in parameters}
    if not set(flow.values) - {COLLECTION_PARAMETER} <= {*parameters, *body} or not (parameters or body):
        raise ValueError(f"{operation['operationId']} takes nothing of {', '.join(flow.values)}.")
    return ({"parameters": parameters} if parameters else {}) | ({"requestBody": body} if body else {})


def _fields(operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> set[str]:
    """Names of the fields of the JSON body."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    while "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    return set(schema.get("properties", {}))
