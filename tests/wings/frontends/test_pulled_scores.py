"""The ledger of pulls over HTTP: stored once, read in pages, kept apart by principal."""

import uuid
from typing import Any

import pytest

from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from tests.api.conftest import Variant
from tests.support.strict_client import TestClient

DIGEST = "ab" * 32


def score(score_id: str, **changed: Any) -> dict[str, Any]:
    return {
        "score_id": score_id,
        "judge": "langfuse",
        "rating": "up",
        "digest": DIGEST,
        "revision": 1,
        "scored_at": "2026-05-01T12:00:00Z",
        "queries": [str(uuid.UUID(int=7))],
    } | changed


def put(http: TestClient, collection: str, *scores: dict[str, Any], source: str = "langfuse") -> Any:
    return http.put(f"/collections/{collection}/pulls/{source}", json={"scores": list(scores)})


def list_scores(http: TestClient, collection: str, source: str = "langfuse", **where: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    after: str | None = None
    while True:
        params = where | ({} if after is None else {"after": after})
        page = http.get(f"/collections/{collection}/pulls/{source}", params=params)
        assert page.status_code == 200, page.text
        found += page.json()["scores"]
        after = page.json()["next_after"]
        if after is None:
            return found


def test_scores_are_replaced_and_read_page_by_page(http: TestClient, curie: str) -> None:
    first, second = score("a"), score("b", scored_at="2026-06-01T00:00:00Z")
    assert put(http, curie, first, second).json() == {"collection": curie, "source": "langfuse", "stored": 2}
    changed = first | {"rating": None, "revision": 2}
    assert put(http, curie, changed).status_code == 200
    assert list_scores(http, curie, limit=1) == [changed, second]
    assert list_scores(http, curie, **{"from": "2026-05-15T00:00:00Z"}) == [second]
    assert list_scores(http, curie, source="dify") == []


@pytest.mark.parametrize(
    "odd",
    [
        {"rating": "sideways"},
        {"digest": "short"},
        {"revision": 0},
        {"scored_at": "yesterday"},
        {"queries": ["x"]},
        {"judge": "!"},
        {"score_id": ""},
        {"more": 1},
    ],
)
def test_a_bad_score_is_refused_and_none_is_stored(http: TestClient, curie: str, odd: dict[str, Any]) -> None:
    assert put(http, curie, score("right"), score("odd") | odd).status_code == 422
    assert list_scores(http, curie) == []


def test_a_score_named_twice_or_an_odd_source_is_refused(http: TestClient, curie: str) -> None:
    assert put(http, curie, score("a"), score("a")).status_code == 422
    assert put(http, curie).status_code == 422
    assert put(http, curie, score("a"), source="Not a name").status_code == 422
    assert put(http, "nowhere", score("a")).status_code == 404


def test_pulls_of_one_principal_do_not_touch_those_of_another(variant: Variant, curie: str) -> None:
    guarded = variant(access="keys")
    clients = []
    for name in ("first", "second"):
        wanted = AccessKeyRequest(name=name, scopes={"*": ["judge"]})
        made = guarded.auth.access_keys.make(LOCAL, wanted, LOCAL.tenant)
        clients.append(TestClient(create_app(guarded), headers={"authorization": f"Bearer {made.key}"}))
    assert put(clients[0], curie, score("a")).status_code == 200
    assert [len(list_scores(client, curie)) for client in clients] == [1, 0]
