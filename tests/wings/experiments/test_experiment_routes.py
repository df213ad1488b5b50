"""Experiments over HTTP: settings, what queries make of them, and the report on arms."""

from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from engram.runtime.api_process import create_app
from engram.services.question.query import Query
from tests.api.conftest import Variant
from tests.api.operations import assert_refused
from tests.support.openai_server import OpenAiServer, keyword_handler
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"
ONE_ARM = {"arms": [{"name": "everybody", "percent": 100, "memory": "off", "profile": "paper"}]}


def patch_collection(http: TestClient, collection: str, **patch: Any) -> dict[str, Any]:
    response = http.patch(f"/collections/{collection}", json=patch)
    assert response.status_code == 200, response.text
    shown: dict[str, Any] = response.json()
    return shown


def ask(http: TestClient, collection: str, **more: Any) -> dict[str, Any]:
    response = http.post("/query", json={"collection": collection, "query": QUESTION} | more)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_settings_are_shown_wherever_the_collection_is(http: TestClient, curie: str) -> None:
    fresh = http.get(f"/collections/{curie}").json()
    assert (fresh["serving"], fresh["experiment"], fresh["exploration"]) == ("live", None, None)
    changed = patch_collection(http, curie, serving="shadow", experiment=ONE_ARM, exploration={"share": 0.1})
    arm = {"name": "everybody", "percent": 100.0, "memory": "off", "profile": "paper", "strategy": "graph"}
    assert changed == fresh | {
        "serving": "shadow",
        "experiment": {"arms": [arm]},
        "exploration": {"share": 0.1, "slots": 1, "seed": None},
    }
    assert http.get(f"/collections/{curie}").json() == changed
    listed = http.get("/collections", params={"limit": 1000}).json()["collections"]
    assert changed in listed
    assert patch_collection(http, curie, serving=None, experiment=None, exploration=None) == fresh


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        ({"experiment": {"arms": []}}, "at least 1"),
        ({"experiment": {"arms": [{"name": "a", "percent": 60}, {"name": "b", "percent": 60}]}}, "not exceed 100"),
        ({"experiment": {"arms": [{"name": "a", "percent": 1}, {"name": "a", "percent": 1}]}}, "of their own"),
        ({"exploration": {"slots": 2}}, "share"),
        ({"exploration": {"share": 0.5, "slots": 11}}, "slots"),
    ],
)
def test_invalid_settings_are_refused(http: TestClient, curie: str, patch: dict[str, Any], said: str) -> None:
    before = http.get(f"/collections/{curie}").json()
    response = http.patch(f"/collections/{curie}", json=patch)
    assert response.status_code == 422
    assert_refused(response)
    assert said in response.json()["detail"]
    assert http.get(f"/collections/{curie}").json() == before


def test_percentages_may_add_up_to_all(http: TestClient, curie: str) -> None:
    shares = [14.3, 14.3, 14.3, 14.3, 14.3, 14.3, 14.2]
    arms = [{"name": f"arm {at}", "percent": share} for at, share in enumerate(shares)]
    patch_collection(http, curie, experiment={"arms": arms})
    assert all(ask(http, curie, unit=f"user-{at}")["arm"] is not None for at in range(10))


def test_only_a_query_that_says_no_arm_is_given_one(http: TestClient, curie: str) -> None:
    patch_collection(http, curie, experiment=ONE_ARM)
    given = ask(http, curie)
    assert (given["arm"], given["memory"], given["profile"]) == ("everybody", "off", "paper")
    for said in ({}, {"memory": "read"}, {"strategy": "dense"}):
        own = ask(http, curie, arm=said)
        assert (own["arm"], own["memory"], own["profile"]) == (None, "read", "default")
    again = http.get(f"/queries/{given['query_id']}", params={"collection": curie}).json()
    assert (again["arm"], again["shadow"]) == ("everybody", False)


def test_worded_answers_follow_the_experiment(http: TestClient, variant: Variant, curie: str) -> None:
    patch_collection(http, curie, experiment=ONE_ARM)
    body = {"collection": curie, "query": QUESTION}
    with OpenAiServer(keyword_handler) as server:
        worded = TestClient(create_app(variant(llm_base_url=server.base_url)), raise_server_exceptions=False)
        retrieval = worded.post("/answer", json=body).json()["retrieval"]
        assert (retrieval["arm"], retrieval["memory"], retrieval["profile"]) == ("everybody", "off", "paper")
        patch_collection(http, curie, serving="shadow")
        retrieval = worded.post("/answer", json=body | {"arm": {"memory": "read"}}).json()["retrieval"]
    assert (retrieval["arm"], retrieval["memory"], retrieval["shadow"]) == (None, "off", True)


def test_explored_passages_are_marked_and_accept_verdicts(http: TestClient, curie: str) -> None:
    assert not any(hit["explored"] for hit in ask(http, curie, top_k=3)["passages"])
    patch_collection(http, curie, exploration={"share": 1.0, "slots": 2, "seed": 3})
    answer = ask(http, curie, top_k=3, unit="user")
    assert [hit["explored"] for hit in answer["passages"]] == [False, True, True]
    named = [hit["sentences"][0]["sentence_id"] for hit in answer["passages"][1:]]
    verdict = {"collection": curie, "query_id": answer["query_id"], "supporting": named[:1], "wait": True}
    changes = http.post("/feedback", json=verdict, headers={"idempotency-key": str(uuid4())}).json()["changes"]
    assert named[0] in {change["sentence_id"] for change in changes if change["target"] == 1}
    assert named[1] not in {change["sentence_id"] for change in changes}
    again = http.get(f"/queries/{answer['query_id']}", params={"collection": curie}).json()
    assert [hit["explored"] for hit in again["passages"]] == [False, True, True]


def test_the_report_compares_arms(http: TestClient, curie: str) -> None:
    arms = [{"name": "off", "percent": 50, "memory": "off"}, {"name": "read", "percent": 50}]
    patch_collection(http, curie, experiment={"arms": arms})
    for number in range(12):
        answer = ask(http, curie, unit=f"user-{number}")
        if number % 3:
            hit = answer["passages"][0 if answer["arm"] == "read" else 1]["passage_id"]
            verdict = {"collection": curie, "query_id": answer["query_id"], "supporting_passages": [hit]}
            http.post("/feedback", json=verdict | {"wait": True}, headers={"idempotency-key": str(uuid4())})
    report = http.get(f"/collections/{curie}/lift").json()
    assert (report["collection"], report["from"], report["to"], report["baseline"]) == (curie, None, None, "off")
    off, read, rest = report["arms"]
    assert [arm["arm"] for arm in report["arms"]] == ["off", "read", None]
    assert off["queries"] + read["queries"] == 12
    assert off["unjudged"] + read["unjudged"] == 4
    assert rest["queries"] == 0
    assert off["reciprocal_rank"] == {"mean": 0.5, "n": off["judged"], "difference": None}
    assert read["reciprocal_rank"]["mean"] == 1.0
    assert read["reciprocal_rank"]["difference"] == {"value": 0.5, "low": None, "high": None}  # neither varies
    success = read["retrieval_success"]["difference"]
    assert success["low"] < success["value"] == 0.0 < success["high"]
    assert read["generation_success"] == {"mean": None, "n": 0, "difference": None}
    later = http.get(f"/collections/{curie}/lift", params={"from": "2999-01-01T00:00:00+01:00"}).json()
    assert later["from"] == "2998-12-31T23:00:00Z"
    assert [arm["queries"] for arm in later["arms"]] == [0, 0, 0]


@pytest.mark.parametrize(
    "params",
    [{"from": "yesterday"}, {"to": "2026-05-01"}, {"baseline": " "}, {"baseline": "x" * 101}, {"baseline": "no"}],
    ids=str,
)
def test_a_report_that_makes_no_sense_is_refused(http: TestClient, curie: str, params: dict[str, str]) -> None:
    response = http.get(f"/collections/{curie}/lift", params=params)
    assert response.status_code == 422
    assert_refused(response)


def test_retrieval_itself_sees_memory_in_shadow(http: TestClient, application: Application, curie: str) -> None:
    """The rule stands before retrieval, not in it: who measures memory asks below."""
    patch_collection(http, curie, serving="shadow", experiment=ONE_ARM, exploration={"share": 1.0})
    answer = application.answers.question.answer(
        Query(text=QUESTION, scope=application.auth.access.scope(curie), top_k=2, caller_chose_arm=False)
    )
    assert (answer.memory, answer.profile, answer.arm, answer.shadow) == ("read", "default", None, False)
    assert not any(hit.explored for hit in answer.passages)
