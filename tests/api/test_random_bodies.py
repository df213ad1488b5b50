"""Bodies nobody thought of: made up around the true fields, they are accepted or refused and never fail."""

import json
from typing import Any
from uuid import uuid4

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from engram.composition.container import Application
from tests.api.operations import assert_refused
from tests.support.strict_client import TestClient

bounded = settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
texts = st.text(st.characters(codec=None, categories=None), max_size=30)
numbers = st.one_of(
    st.integers(), st.integers(-(10**40), 10**40), st.floats(), st.sampled_from([2**31, 2**53, 2**63 - 1, 2**63])
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=8,
)


def bodies(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Mostly right: each field has its true kind of value, or rarely anything."""

    def rarely_wrong(right: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.integers(0, 9).flatmap(lambda dice: values if dice == 0 else right)

    known = st.fixed_dictionaries(
        {name: rarely_wrong(right) for name, right in required.items()},
        optional={name: rarely_wrong(right) for name, right in optional.items()},
    )
    strange = st.one_of(st.just({}), st.just({}), st.just({}), st.dictionaries(texts, values, max_size=2))
    return st.builds(lambda body, more: body | more, known, strange)


def send(http: TestClient, path: str, body: Any, method: str = "POST") -> httpx.Response:
    response = http.request(
        method,
        path,
        content=json.dumps(body).encode("ascii"),
        headers={"content-type": "application/json", "idempotency-key": str(uuid4())},
    )
    if response.status_code >= 400:
        assert_refused(response)
    return response


words = st.one_of(texts, st.sampled_from(["Where was Marie Curie born in 1867?", "Warsaw", "in 1898", "?", "the"]))
metadata = st.dictionaries(texts, values, max_size=3)
queries = bodies(
    {"query": words},
    {
        "top_k": st.integers(1, 100),
        "max_hops": st.none() | st.integers(1, 10),
        "arm": bodies(
            {},
            {
                "memory": st.sampled_from(["off", "read"]),
                "profile": st.sampled_from(["paper", "default"]),
                "strategy": st.sampled_from(["graph", "dense", "lexical", "hybrid"]),
            },
        ),
        "filter": st.none() | metadata,
        "time_constraint": st.none() | words,
        "stop_rule": st.sampled_from([None, "none", "coverage"]),
        "unit": st.none() | words,
        "include": st.lists(st.sampled_from(["sentences", "entities", "trace"]), max_size=3),
        "expansions": st.lists(bodies({"method": words, "text": words}, {}), max_size=2),
    },
)
expansions = bodies(
    {"query": words, "methods": st.lists(st.just("prf"), max_size=2)},
    {"passages": st.integers(1, 20)},
)
references = st.one_of(
    st.integers(1, 40),
    bodies({"passage_id": st.sampled_from(["curie", "warsaw", "nowhere"]), "text": words}, {}),
)
verdicts = bodies(
    {},
    {
        "supporting": st.lists(references, max_size=3),
        "rejected": st.lists(references, max_size=3),
        "missed": st.lists(references, max_size=3),
        "complete": st.booleans(),
        "retrieval_success": st.none() | st.booleans(),
        "expansions": st.lists(bodies({"method": words, "text": words}, {}), max_size=2),
        "supporting_passages": st.lists(st.sampled_from(["curie", "warsaw"]) | words, max_size=2),
        "generation_score": st.none() | st.floats(0, 1),
        "judge": words,
        "confidence": st.floats(0.01, 1.0),
        "wait": st.booleans(),
    },
)
moments = st.datetimes(timezones=st.timezones()).map(lambda moment: moment.isoformat())
revocations = bodies({}, {"judge": words, "from": st.none() | moments | words, "to": moments, "all": st.booleans()})
arms = bodies(
    {"name": words, "percent": st.floats(0, 60) | st.integers(0, 60)},
    {
        "memory": st.sampled_from(["off", "read"]),
        "profile": st.sampled_from(["paper", "default"]),
        "strategy": st.sampled_from(["graph", "dense", "lexical", "hybrid"]),
    },
)
servings = bodies(
    {},
    {
        "serving": st.sampled_from(["live", "shadow", None]),
        "experiment": st.none() | bodies({"arms": st.lists(arms, max_size=3)}, {}),
        "exploration": st.none()
        | bodies({}, {"share": st.floats(0, 1), "slots": st.integers(1, 10), "seed": st.none() | numbers}),
    },
)
documents = bodies(
    {
        "passages": st.lists(
            bodies(
                {"id": words, "text": words},
                {"title": words, "metadata": metadata, "sentences": st.lists(words, max_size=3)},
            ),
            max_size=3,
        )
    },
    {},
)


@bounded
@given(body=queries)
@example(body={"query": "01ÀU"})  # the only candidate sentence is unlike the question: a negative score
def test_queries(http: TestClient, curie: str, body: dict[str, Any]) -> None:
    send(http, "/query", {"collection": curie} | body)


@pytest.mark.wing("published")
@bounded
@given(body=expansions)
def test_expansions(http: TestClient, curie: str, body: dict[str, Any]) -> None:
    """What comes of it is short enough for a verdict, and says something."""
    response = send(http, "/expand", {"collection": curie} | body)
    for unit in response.json().get("expansions", []):
        assert 0 < len(unit["text"].strip()) <= 20_000


@bounded
@given(body=verdicts)
def test_verdicts(http: TestClient, curie: str, body: dict[str, Any]) -> None:
    query = http.post("/query", json={"collection": curie, "query": "Where was Marie Curie born?"}).json()
    send(http, "/feedback", {"collection": curie, "query_id": query["query_id"]} | body)


@bounded
@given(body=revocations)
def test_revocations(http: TestClient, curie: str, body: dict[str, Any]) -> None:
    accepted = send(http, "/feedback/revoke", {"collection": curie} | body)
    if accepted.status_code == 202:
        assert http.get(accepted.json()["status_url"]).json()["revocation"] is not None


@bounded
@given(body=servings, unit=st.none() | words)
def test_settings(http: TestClient, curie: str, body: dict[str, Any], unit: str | None) -> None:
    """Whatever is set, queries are answered."""
    changed = send(http, f"/collections/{curie}", body, "PATCH")
    if changed.status_code == 200:
        shown = changed.json()
        assert shown == http.get(f"/collections/{curie}").json()
        assert body.get("serving", shown["serving"]) in (shown["serving"], None)
        asked = send(http, "/query", {"collection": curie, "query": "Where was Marie Curie born?", "unit": unit})
        assert asked.status_code in {200, 422}
        if asked.status_code == 200:
            assert asked.json()["shadow"] == (shown["serving"] == "shadow")


def test_passages(http: TestClient, application: Application, collection: str) -> None:
    """What is accepted is also ingested: nothing that passes the door fails behind it."""
    accepted: list[str] = []

    @bounded
    @given(body=documents)
    def post(body: dict[str, Any]) -> None:
        response = send(http, f"/passages?collection={collection}", body)
        if response.status_code == 202:
            accepted.append(response.json()["status_url"])

    post()
    assert accepted
    application.jobs.runner.run_ready()
    for status_url in accepted:
        job = http.get(status_url).json()
        assert job["status"] == "succeeded", job
        assert job["received"] == job["created"] + job["updated"] + job["unchanged"]


@bounded
@given(body=values)
def test_anything(http: TestClient, body: Any) -> None:
    for path in ("/query", "/answer", "/expand", "/feedback", "/passages", "/collections/nowhere/rollback"):
        send(http, path, body)
    send(http, "/feedback/revoke", body)
    send(http, "/collections/nowhere", body, "PATCH")
