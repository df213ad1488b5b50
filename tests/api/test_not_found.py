"""What is another's costs as much as what is not there: as many connections, and the same statements on them.

How long both take, ``benchmarks/not_found_timing.py`` compares.
"""

import re
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from engram.composition.container import Application
from tests.api.conftest import Variant
from tests.api.operations import ABSENT_IDS, MAKING, well_formed
from tests.api.test_access import NEEDED, KeyedClient, keyed
from tests.support.constants import ACCESS_CACHE, set_constants
from tests.support.statements import record_statements
from tests.support.strict_client import TestClient

__all__ = ["keyed"]
QUESTION = "Where was Marie Curie born?"
NOT_THERE = "not-there"
OWN_PATHS = MAKING | {
    "/collections",
    "/queries:batch",
    "/audit",
    "/answer",
    "/v1/models",
    "/v1/vector_stores",
}
"""Routes that are of whoever asks, whatever there is elsewhere; an answer takes an endpoint first."""
TARGETS = sorted(
    {
        (method, path)
        for method, path in NEEDED
        if path not in OWN_PATHS and (not path.startswith("/access") or "{" in path)
    }
)
TARGETS_BY_ID = [(method, path) for method, path in TARGETS if re.search(r"\{(query|job|feedback)_id\}", path)]


@pytest.fixture
def guarded(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> Application:
    """The application, needing keys, which it looks up once."""
    set_constants(monkeypatch, {ACCESS_CACHE: 3_600.0})
    return variant(access="keys")


@pytest.fixture
def owned(keyed: KeyedClient, curie: str) -> Mapping[str, Any]:
    """Something of everything that has an id, of the tenant `local`, by the names of the paths' parameters."""
    owner = keyed("owner")

    def post(path: str, body: dict[str, Any]) -> Any:
        headers = {"idempotency-key": f"{curie}{path}"}
        answer = owner.post(path, json=body | {"collection": curie}, headers=headers)
        assert answer.status_code < 300, answer.text
        return answer.json()

    asked = post("/query", {"query": QUESTION})
    sentence = asked["passages"][0]["sentences"][0]["sentence_id"]
    judged = post("/feedback", {"query_id": asked["query_id"], "supporting": [sentence], "wait": True})
    said = post(
        "/facts", {"source": "a", "facts": [{"subject": "Curie", "predicate": "spouse", "object": "Pierre"}]}
    )
    jobs = owner.get(f"/collections/{curie}/jobs").json()["jobs"]
    return {
        "name": curie,
        "passage_id": asked["passages"][0]["passage_id"],
        "query_id": asked["query_id"],
        "job_id": jobs[0]["job_id"],
        "session_id": post("/sessions", {"question": QUESTION, "wait": True})["session_id"],
        "feedback_id": judged["feedback_id"],
        "sentence_id": sentence,
        "judge": judged["judge"],
        "key_id": owner.headers["x-key-id"],
        "fact_id": said["facts"][0]["fact_id"],
        "event_id": said["events"][0]["event_id"],
        "entity_id": said["facts"][0]["object_entity_id"] or 1,
    }


@pytest.mark.parametrize("who", ["stranger", "colleague"])
@pytest.mark.wing("experiments", "facts", "frontends", "importing", "sessions")
def test_foreign_resource_is_indistinguishable_from_a_missing_one(
    who: str, keyed: KeyedClient, owned: Mapping[str, Any]
) -> None:
    curie = owned["name"]
    asking = (
        keyed("eve", {"*": ["admin"]}, tenant=f"tenant-{curie}")
        if who == "stranger"
        else keyed("bob", {"elsewhere": ["admin"]})
    )
    asking.get("/access/me")
    compared = 0
    for method, path in TARGETS:
        if who == "colleague" and path.startswith("/access"):
            continue  # takes a right on all collections
        assert_same_refusal(asking, method, path, (owned, curie), ({"name": NOT_THERE}, NOT_THERE))
        compared += 1
    assert compared > 40


@pytest.mark.wing("experiments", "facts", "frontends", "importing", "sessions")
def test_foreign_id_without_collection_looks_missing(keyed: KeyedClient, owned: Mapping[str, Any]) -> None:
    stranger = keyed("eve", {"*": ["admin"]}, tenant=f"tenant-{owned['name']}")
    stranger.get("/access/me")
    for method, path in TARGETS_BY_ID:
        assert assert_same_refusal(stranger, method, path, (owned, None), ({}, None))


Asked = tuple[Mapping[str, Any], str | None]
"""Ids by the names of the paths' parameters, the others being nobody's, and the collection if one is named."""


def ask(client: TestClient, method: str, path: str, asked: Asked) -> httpx.Response:
    ids, collection = asked
    arguments = well_formed(method, path, collection or NOT_THERE)
    if path == "/feedback" and "query_id" in ids and "json" in arguments:
        arguments["json"] = arguments["json"] | {"query_id": ids["query_id"]}
    if collection is None:
        arguments.pop("params", None)
    target = path
    for name, absent in ABSENT_IDS.items():
        target = target.replace(name, str(ids.get(name.strip("{}"), absent)))
    return client.request(method, target, **arguments)


def ask_recorded(
    client: TestClient, method: str, path: str, asked: Asked
) -> tuple[httpx.Response, list[list[str]]]:
    """The answer, and what it took: the less of two times, as a tenant's quotas are looked up now and then."""
    took = []
    for _ in range(2):
        with record_statements() as statements:
            answer = ask(client, method, path, asked)
        took.append(statements.connections)
    return answer, min(took, key=lambda connections: sum(map(len, connections)))


def assert_same_refusal(client: TestClient, method: str, path: str, theirs: Asked, nobodys: Asked) -> int:
    """Both are 404 in the same words, and take the same; how many statements."""
    (answer, took), (unknown, took_too) = (ask_recorded(client, method, path, asked) for asked in (theirs, nobodys))
    words = []
    for one in (answer, unknown):
        assert one.status_code == 404, (method, path, one.text)
        said = str(one.json() | {"request_id": None})
        words.append(re.sub(r"'[^']*'|[0-9a-f]{8}-[0-9a-f-]{27}|\d+", "...", said))
    assert words[0] == words[1], (method, path)
    assert answer.headers.keys() == unknown.headers.keys()
    assert took == took_too, (method, path)
    return sum(map(len, took))
