"""A service with the wing off answers as before, and names no verdict behind its answers."""

from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from engram.runtime.api_process import create_app
from tests.api.conftest import Variant
from tests.support import state
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"
CAUSES = {"influences": [], "influences_cut": False}


@pytest.fixture
def without_why(variant: Variant) -> Application:
    return variant(wings="sessions")


def ask(http: TestClient, collection: str) -> dict[str, Any]:
    """Ask for a trace."""
    response = http.post("/query", json={"collection": collection, "query": QUESTION, "include": ["trace"]})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def teach(application: Application, http: TestClient, collection: str) -> None:
    supported = next(iter(state.sentences(application, collection, "curie").values()))
    query_id = ask(http, collection)["query_id"]
    state.judge(application, collection, query_id, [supported], key=uuid4().hex, wait=True)


def test_an_answer_is_the_same_and_its_trace_names_no_verdict(
    http: TestClient, without_why: Application, application: Application, curie: str
) -> None:
    teach(application, http, curie)
    explained, plain = ask(http, curie), ask(TestClient(create_app(without_why)), curie)
    assert explained["trace"]["sufficiency"]["influences"]
    assert any(row["influences"] for hop in explained["trace"]["hops"] for row in hop["sentences"])
    explained["trace"] |= {"passages": None, "rejected": None}
    explained["trace"]["sufficiency"] |= CAUSES | {"judgements": []}
    for hop in explained["trace"]["hops"]:
        hop["sentences"] = [row | CAUSES for row in hop["sentences"]]
    for name in ("query_id", "timings"):
        del explained[name], plain[name]
    assert plain == explained


def test_an_explained_answer_is_still_read_with_its_verdicts(
    http: TestClient, without_why: Application, application: Application, curie: str
) -> None:
    teach(application, http, curie)
    explained = ask(http, curie)
    off = TestClient(create_app(without_why))
    stored = off.get(f"/queries/{explained['query_id']}", params={"collection": curie}).json()
    assert stored["trace"] == explained["trace"]
    assert stored["trace"]["passages"][0]["influences"]
