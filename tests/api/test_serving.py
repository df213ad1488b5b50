"""How a collection serves, over HTTP: live or in shadow."""

from typing import Any

from tests.api.operations import assert_refused
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"


def ask(http: TestClient, collection: str, **more: Any) -> dict[str, Any]:
    response = http.post("/query", json={"collection": collection, "query": QUESTION} | more)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_a_merge_patch_may_call_itself_one(http: TestClient, curie: str) -> None:
    response = http.patch(
        f"/collections/{curie}",
        content=b'{"serving": "shadow"}',
        headers={"content-type": "application/merge-patch+json"},
    )
    assert response.status_code == 200, response.text
    assert response.json()["serving"] == "shadow"


def test_other_ways_to_serve_are_refused(http: TestClient, curie: str) -> None:
    response = http.patch(f"/collections/{curie}", json={"serving": "sideways"})
    assert response.status_code == 422
    assert_refused(response)
    assert "'live' or 'shadow'" in response.json()["detail"]
    assert http.get(f"/collections/{curie}").json()["serving"] == "live"


def test_shadow_says_why_memory_is_off(http: TestClient, curie: str) -> None:
    assert ask(http, curie)["shadow"] is False
    assert http.patch(f"/collections/{curie}", json={"serving": "shadow"}).status_code == 200
    answer = ask(http, curie, arm={"memory": "read"})
    assert (answer["memory"], answer["shadow"]) == ("off", True)
    again = http.get(f"/queries/{answer['query_id']}", params={"collection": curie}).json()
    assert (again["memory"], again["shadow"]) == ("off", True)
