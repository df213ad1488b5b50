"""A service with the wing off knows no arms and no exploration."""

from typing import Any

import pytest

from engram.composition.container import Application
from engram.runtime.api_process import create_app
from tests.api.conftest import Variant
from tests.api.operations import assert_refused
from tests.support import state
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"
ARMS = {"arms": [{"name": "everybody", "percent": 100, "memory": "off"}]}
EXPLORATION = {"share": 1.0, "slots": 2, "seed": 3}


@pytest.fixture
def off(variant: Variant) -> TestClient:
    return TestClient(create_app(variant(wings="frontends,importing")))


def ask(http: TestClient, collection: str) -> dict[str, Any]:
    """The answer, without what differs from one query to the next."""
    response = http.post("/query", json={"collection": collection, "query": QUESTION, "top_k": 3, "unit": "user"})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return {name: value for name, value in answer.items() if name not in {"query_id", "timings"}}


def test_queries_are_answered_as_without_arms_and_exploration(
    http: TestClient, off: TestClient, application: Application, curie: str
) -> None:
    plain = ask(http, curie)
    assert ask(off, curie) == plain
    settings = {"experiment": ARMS, "exploration": EXPLORATION}
    application.corpus.collection_settings.configure(application.auth.access.scope(curie), settings)
    with_settings = ask(http, curie)
    assert (with_settings["arm"], with_settings["memory"]) == ("everybody", "off")
    assert [hit["explored"] for hit in with_settings["passages"]] == [False, True, True]
    assert ask(off, curie) == plain
    stored = state.rows(application, curie, "episode")[-1]
    assert (stored["arm"], stored["explored"]) == (None, None)


def test_its_settings_can_be_cleared_and_not_made(off: TestClient, application: Application, curie: str) -> None:
    for name, value in (("experiment", ARMS), ("exploration", EXPLORATION)):
        refused = off.patch(f"/collections/{curie}", json={"serving": "shadow", name: value})
        assert refused.status_code == 422
        assert_refused(refused)
        assert refused.json()["detail"].startswith(f"{name}: its wing is off.")
    assert application.auth.access.scope(curie).collection.serving == "live"
    application.corpus.collection_settings.configure(application.auth.access.scope(curie), {"experiment": ARMS})
    shown = off.patch(f"/collections/{curie}", json={"serving": "shadow"}).json()
    assert (shown["serving"], shown["experiment"]["arms"][0]["name"]) == ("shadow", "everybody")
    assert off.patch(f"/collections/{curie}", json={"experiment": None}).json()["experiment"] is None
