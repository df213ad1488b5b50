"""Every operation of the OpenAPI document with a request for each problem that it documents."""

import json
import os
from typing import Any
from uuid import UUID

import httpx

from engram.api.schemas import MAX_ID
from engram.composition.wings import choose_wings, list_installed_wings
from engram.runtime.api_process import create_app, list_required_scopes
from engram.wings.importing.services.file_tokens import FileToken
from tests.support.environment import WINGS

Operation = tuple[str, str]
Arguments = dict[str, Any]
DOCUMENT = create_app(None).openapi()
_OF_WINGS = {
    (method, route.path_format): wing
    for wing in list_installed_wings()
    for route, _ in list_required_scopes(wing.load_routes().routers)
    for method in route.methods
}
_OFF = _OF_WINGS.keys() - {
    operation for operation, wing in _OF_WINGS.items() if wing in choose_wings(WINGS, list_installed_wings())
}
OPERATIONS: list[Operation] = [
    (method.upper(), path)
    for path, methods in DOCUMENT["paths"].items()
    for method in methods
    if (method.upper(), path) not in _OFF
]
"""Those of the core, and of the wings that are on."""
_PART = os.environ.get("TESTED_PART", "all")
WALKED = [one for one in OPERATIONS if _PART in ("all", "wings" if one in _OF_WINGS else "core")]
"""Those that walks go over: each of `--of core` and `--of wings` has its own."""
RACES = {
    ("POST", "/passages", 404),
    ("POST", "/documents", 404),
    ("POST", "/documents", 501),
    ("PATCH", "/documents/{source}", 409),
    ("POST", "/api/v1/files/", 404),
    ("POST", "/api/v1/files/", 501),
    ("POST", "/api/v1/knowledge/{name}/reset", 409),
    ("POST", "/api/v1/knowledge/{name}/sync/cleanup", 409),
    ("POST", "/access/keys", 409),
    ("POST", "/access/keys/{key_id}/rotate", 409),
    ("DELETE", "/collections/{name}/principals/{principal}", 409),
}
"""Problems that no single request provokes; they have tests of their own."""
BY_KEYS = {401, 403, 429}
"""What access keys bring about: ``test_access`` walks all routes for it."""
PROBLEMS: list[tuple[str, str, int]] = [
    (method, path, int(status))
    for method, path in WALKED
    for status in DOCUMENT["paths"][path][method.lower()]["responses"]
    if int(status) >= 400 and int(status) not in BY_KEYS and (method, path, int(status)) not in RACES
]
UNKNOWN_ID = UUID(int=0)
ABSENT_IDS = {
    "{collection}": "no-such-collection",
    "{name}": "no-such-collection",
    "{passage_id}": "no-such-passage",
    "{query_id}": str(UNKNOWN_ID),
    "{job_id}": str(UNKNOWN_ID),
    "{session_id}": str(UNKNOWN_ID),
    "{feedback_id}": "1",
    "{sentence_id}": "1",
    "{judge}": "nobody",
    "{principal}": "nobody",
    "{source}": "langfuse",
    "{key_id}": str(MAX_ID),
    "{fact_id}": "999999999",
    "{event_id}": "999999999",
    "{entity_id}": "999999999",
    "{file_id}": FileToken("no-such-collection", "oikb/curie.md", None).write(),
}
CHAT = "/v1/chat/completions"
DIFY = "/retrieval"
STORES = "/v1/vector_stores"
SEARCH = "/v1/vector_stores/{name}/search"
RERANK = ("/v1/rerank", "/v2/rerank")
KNOWLEDGE = "/api/v1/knowledge/{name}"
FILES = "/api/v1/files/"
MAKING = {f"{KNOWLEDGE}/sync/diff", f"{KNOWLEDGE}/dirs/create", FILES, "/documents", "/passages"}
"""Paths whose requests make the collection, or are about one that a later request makes."""
WORDED = frozenset({"/answer"})
"""Paths where nothing is looked for if no endpoint could put it into words."""
_BODIES: dict[str, Any] = {
    "/collections/{name}/tuning": {"serving": 0},
    "/query": {"query": "Where was Marie Curie born?"},
    "/queries:batch": {"queries": [{"query": "Where was Marie Curie born?"}]},
    "/query/compare": {"query": "Where was Marie Curie born?"},
    "/answer": {"query": "Where was Marie Curie born?"},
    CHAT: {"messages": [{"role": "user", "content": "Where was Marie Curie born?"}]},
    DIFY: {"query": "Where was Marie Curie born?", "retrieval_setting": {"top_k": 3, "score_threshold": 0.0}},
    SEARCH: {"query": "Where was Marie Curie born?"},
    **{path: {"query": "Where was Marie Curie born?", "documents": ["Warsaw"]} for path in RERANK},
    "/expand": {"query": "Where was Marie Curie born?", "methods": ["prf"]},
    "/sessions": {"question": "Where was Marie Curie born?"},
    "/sessions/{session_id}/rounds": {"question": "Where was Marie Curie born?"},
    "/sessions/{session_id}/feedback": {"none_helped": True},
    "/feedback": {"query_id": str(UNKNOWN_ID), "none_helped": True},
    "/feedback/revoke": {"judge": "nobody"},
    "/feedback/retry": {"judge": "nobody"},
    "/documents": {"text": "Marie Curie was born in Warsaw."},
    "/passages": {"passages": [{"id": "curie", "text": "Marie Curie was born in Warsaw."}]},
    "/collections/{name}": {"serving": "shadow"},
    "/documents:compare": {"folder": "handbook", "documents": [{"source": "pay.pdf", "digest": "a"}]},
    "/documents/{source}": {"readers": ["group:hr"]},
    f"{KNOWLEDGE}/sync/diff": {"manifest": [{"filename": "curie.md", "path": "", "checksum": "a", "size": 1}]},
    f"{KNOWLEDGE}/sync/cleanup": {"file_ids": []},
    f"{KNOWLEDGE}/dirs/create": {"name": "physics"},
    "/passages/{passage_id}": {"readers": ["group:hr"]},
    "/collections/{name}/passages:count": {"by": "topic"},
    "/collections/{name}/rekey": {"key_building": "title"},
    "/collections/{name}/reembed": {"model": "all-MiniLM-L6-v2"},
    "/collections/{name}/replay": {"until": "2020-01-01T00:00:00Z"},
    "/collections/{name}/rollback": {"generation": 0},
    "/collections/{name}/judges/{judge}": {"daily_share": 0.5},
    "/collections/{name}/pulls/{source}": {
        "scores": [
            {
                "score_id": "a",
                "judge": "nobody",
                "rating": "up",
                "digest": "0" * 64,
                "revision": 1,
                "scored_at": "2026-05-01T12:00:00Z",
                "queries": [],
            }
        ]
    },
    "/access/keys": {"name": "nobody", "scopes": {"no-such-collection": ["read"]}},
    "/access/keys/{key_id}/rotate": {},
    "/facts": {"source": "a", "facts": [{"subject": "Curie", "predicate": "spouse", "object": "Pierre"}]},
    "/facts/revise": {"revisions": [{"action": "confirm", "fact_id": 999999999}]},
    "/facts/search": {"query": "Where was Marie Curie born?"},
    "/facts/merge": {"graph": "nothing"},
    "/facts/revoke": {"all": True},
    "/entities/align": {"preview": True},
    "/entities/{entity_id}/merge": {"entities": [999999998]},
    "/entities/{entity_id}/split": {},
    "/predicates": {"predicate": "spouse", "functional": True},
    "/predicates/count": {},
}
WITH_BODIES = frozenset({"PATCH", "POST", "PUT"})
METHODS = {path: method for method, path in OPERATIONS if method in WITH_BODIES}
"""Path -> the method that takes a body there."""
BODIES = {path: body for path, body in _BODIES.items() if path in METHODS}
"""Path -> a body that is right there."""
PARAMETERS: dict[str, Arguments] = {
    "/queries": {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "to": "2020-01-01T00:00:00Z"},
    "/collections/{name}/readers": {"passage_id": "no-such-passage", "as": ["group:hr"]},
}
"""Path of a request without a body -> parameters that it needs besides the collection."""
EMBEDDING: dict[str, Arguments] = {
    "/query": {},
    "/query/compare": {},
    "/answer": {},
    CHAT: {},
    DIFY: {},
    SEARCH: {},
    **{path: {} for path in RERANK},
    "/expand": {},
    "/documents": {},
    FILES: {},
    "/passages": {},
    "/sessions": {},
    "/entities/align": {},
    "/feedback": {"expansions": [{"method": "prf", "text": "radium"}]},
    "/sentences/{sentence_id}/memory": {"query": "Where was Marie Curie born?"},
}
"""Path -> what a request there has besides, so that text is embedded for its collection."""
NAME_FIELDS = {CHAT: "model", DIFY: "knowledge_id", **dict.fromkeys(RERANK, "model")}
"""Path -> the field that names the collection, where it is another one."""
OVER_LIMIT = {
    **dict.fromkeys((f"{KNOWLEDGE}/sync/diff", f"{KNOWLEDGE}/sync/cleanup"), 16 * 2**20 + 1),
    "/passages": 16 * 2**20 + 1,
    "/documents:compare": 16 * 2**20 + 1,
    "/documents": 32 * 2**20 + 1,
    FILES: 33 * 2**20,
}
BINARY = {"content-type": "application/octet-stream"}
KEY = {"idempotency-key": "operations"}
FORM_TYPE = {"content-type": "multipart/form-data; boundary=part"}


def url(path: str) -> str:
    """The path with ids that nothing has."""
    for name, value in ABSENT_IDS.items():
        path = path.replace(name, value)
    return path


def well_formed(method: str, path: str, collection: str = "no-such-collection") -> Arguments:
    """A request that is right in itself."""
    if path == FILES:
        return {"content": _build_form(collection), "params": {}, "headers": KEY | FORM_TYPE}
    if method not in WITH_BODIES or path not in BODIES:
        return {"params": {"collection": collection} | PARAMETERS.get(path, {})}
    if path == "/documents":
        where = {"collection": collection, "name": "curie.json"}
        return {"content": json.dumps(BODIES[path]).encode(), "params": where, "headers": KEY | BINARY}
    by_query = path in ("/passages", "/passages/{passage_id}", "/documents:compare", "/documents/{source}")
    elsewhere = by_query or path == "/queries:batch" or "{name}" in path or path.startswith("/access/")
    named = NAME_FIELDS.get(path, "collection")
    body = BODIES[path] if elsewhere else BODIES[path] | {named: collection}
    params = {"collection": collection} if by_query else {}
    return {"json": body, "params": params, "headers": KEY}


def build_embedding_request(path: str, collection: str) -> tuple[str, Arguments]:
    """URL and arguments of a request for which text has to be embedded."""
    arguments = well_formed(METHODS.get(path, "GET"), path, collection)
    part = "json" if "json" in arguments else "params"
    return url(path.replace("{name}", collection)), arguments | {part: arguments[part] | EMBEDDING[path]}


def build_provoking_request(method: str, path: str, status: int) -> Arguments:
    """A request that ``status`` answers, wherever the application itself is in order."""
    json_type = KEY | {"content-type": "application/json"}
    if (method, path) == ("POST", "/documents"):
        return _build_provoking_document(status)
    if path == FILES:
        return _build_provoking_form(status)
    match status:
        case 400 if method not in WITH_BODIES:
            return {"headers": {"idempotency-key": "two words"}}
        case 400:
            return {"content": b'{"query": ', "headers": json_type}
        case 413:
            return {"content": b" " * OVER_LIMIT.get(path, 4 * 2**20 + 1), "headers": json_type}
        case 415:
            return {"content": b"{}", "headers": KEY | {"content-type": "text/plain"}}
        case 422 if method in WITH_BODIES:
            return {"content": b'{"unknown": 1}', "headers": json_type}
        case 422:
            return {"params": {"collection": "not a name", "after": "not a name", "before": "not a number"}}
        case _:
            return well_formed(method, path)


def _build_provoking_document(status: int) -> Arguments:
    right = well_formed("POST", "/documents")
    match status:
        case 400:
            return right | {"headers": BINARY | {"idempotency-key": "two words"}}
        case 413:
            return right | {"content": b" " * OVER_LIMIT["/documents"]}
        case 415:
            return right | {"headers": KEY | {"content-type": "text/plain"}}
        case 422:
            return right | {"content": b'{"unfinished": '}
        case _:
            return right


def _build_form(collection: str) -> bytes:
    """A file with the field that names its collection, as a multipart body."""
    metadata = json.dumps({"knowledge_id": collection, "file_hash": "a"})
    return (
        '--part\r\nContent-Disposition: form-data; name="metadata"\r\n\r\n'
        f"{metadata}\r\n--part\r\n"
        'Content-Disposition: form-data; name="file"; filename="curie.md"\r\nContent-Type: text/markdown\r\n\r\n'
        "Marie Curie was born in Warsaw.\r\n--part--\r\n"
    ).encode()


def _build_provoking_form(status: int) -> Arguments:
    right = well_formed("POST", FILES)
    match status:
        case 400:
            return right | {"content": b"--part"}
        case 413:
            return right | {"content": b" " * OVER_LIMIT[FILES]}
        case 415:
            return right | {"headers": KEY | {"content-type": "text/plain"}}
        case 422:
            return right | {"content": _build_form("not a name")}
        case _:
            return right


def build_refused_path(path: str) -> str:
    """The path with ids that are none; a path without any stays as it is."""
    for name in ABSENT_IDS:
        path = path.replace(name, "-" if name == "{name}" else "x")
    return path


def assert_problem(response: httpx.Response) -> None:
    """An RFC 9457 document that agrees with its response."""
    assert 400 <= response.status_code < 600, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["type"].startswith("urn:engram:problem:")
    assert problem["status"] == response.status_code
    assert problem["title"]
    assert problem["detail"]


def assert_refused(response: httpx.Response) -> None:
    """The caller's mistake, said as a problem document."""
    assert_problem(response)
    assert response.status_code < 500, response.text
