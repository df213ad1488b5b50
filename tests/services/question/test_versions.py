"""The version of a document that a question is about comes first."""

from collections import Counter
from typing import Any

import pytest

from engram.composition.container import Application
from tests.conftest import Ingest
from tests.support.news_questions import list_notices, list_questions
from tests.support.strict_client import TestClient
from tests.support.version_questions import POLICIES, Policy, find_source, list_lines

LEAST_FIRST = 0.8


def _ask(http: TestClient, collection: str, question: str, **options: Any) -> dict[str, Any]:
    answer = http.post("/query", json={"collection": collection, "query": question, **options})
    assert answer.status_code == 200
    body: dict[str, Any] = answer.json()
    return body


def test_the_asked_version_leads(http: TestClient, ingest: Ingest, collection: str) -> None:
    ingest(*list_lines())
    wrong = []
    for policy in POLICIES:
        for question in policy.questions:
            answer = _ask(http, collection, question.text)
            documents = [passage["source"]["document"] for passage in answer["passages"]]
            if documents[0] != find_source(policy, question.year):
                wrong.append((question.text, documents[:3]))
    asked = sum(len(policy.questions) for policy in POLICIES)
    assert len(wrong) <= (1 - LEAST_FIRST) * asked, wrong


@pytest.fixture
def travel(ingest: Ingest, collection: str) -> Policy:
    ingest(*list_lines())
    return POLICIES[0]


def test_an_answer_says_what_replaces_a_document(http: TestClient, collection: str, travel: Policy) -> None:
    answer = _ask(http, collection, travel.questions[2].text, include=["trace"])
    first = answer["passages"][0]["source"]
    assert (first["valid_from"], first["replaced_by"]) == ("2022-02-01", find_source(travel, 2024))
    assert answer["trace"]["versions"]["asked"] == "then"


def test_a_person_changes_date_and_successor(http: TestClient, collection: str, travel: Policy) -> None:
    where = {"collection": collection}
    oldest, middle, latest = (find_source(travel, year) for year in (2022, 2024, 2025))
    changed = http.patch(f"/documents/{latest}", params=where, json={"valid_from": "2999-01-01"})
    assert changed.status_code == 200
    answer = _ask(http, collection, travel.questions[0].text)
    assert answer["passages"][0]["source"]["document"] == middle
    assert http.patch(f"/documents/{middle}", params=where, json={"replaced_by": None}).status_code == 200
    listed = {one["source"]: one for one in http.get("/documents", params=where).json()["documents"]}
    assert (listed[middle]["replaced_by"], listed[middle]["replaced_origin"]) == (None, "hand")
    assert (listed[latest]["valid_from"], listed[latest]["dated_by"]) == ("2999-01-01", "hand")
    assert listed[middle]["replaces"] == [oldest]
    circle = http.patch(f"/documents/{middle}", params=where, json={"replaced_by": middle})
    assert circle.status_code == 422


def test_no_chain_changes_nothing(http: TestClient, application: Application, curie: str) -> None:
    assert not application.auth.access.scope(curie).collection.has_versions
    answer = _ask(http, curie, "Who discovered polonium now?", include=["trace"])
    assert answer["trace"]["versions"] is None


@pytest.mark.parametrize("question", ["Who discovered polonium?", "Which river flows through Warsaw?"])
def test_passages_without_versions_keep_their_places(
    http: TestClient, ingest: Ingest, collection: str, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    ingest(
        {"id": "curie", "title": "Marie Curie", "text": "Marie Curie discovered polonium in 1898."},
        {"id": "warsaw", "title": "Warsaw", "text": "The Vistula flows through Warsaw."},
        *list_lines(),
    )
    chained = {line["id"] for line in list_lines()}
    ordered = [one["passage_id"] for one in _ask(http, collection, question, top_k=20)["passages"]]
    monkeypatch.setattr(
        "engram.services.question.search.put_asked_version_first", lambda reader, plan, ranking: (ranking, None)
    )
    plain = [one["passage_id"] for one in _ask(http, collection, question, top_k=20)["passages"]]
    assert ordered[0] == plain[0]
    assert ordered[0] not in chained
    assert [one for one in ordered if one not in chained] == [one for one in plain if one not in chained]
    assert [one in chained for one in ordered] == [one in chained for one in plain]


@pytest.mark.wing("why")
def test_a_trace_says_what_age_adds(http: TestClient, ingest: Ingest, collection: str) -> None:
    ingest(*list_notices())
    http.patch(f"/collections/{collection}", json={"newer_half_life_days": 730.0})
    kind, text, _ = list_questions()[0]
    assert kind == "now"
    traced = _ask(http, collection, text, include=["trace"])["trace"]["passages"]
    ages = [one["features"]["age"]["value"] for one in traced if "age" in one["features"]]
    assert min(ages) < 0 < max(ages)
    for one in traced:
        adds = sum(factor["value"] * factor["weight"] for factor in one["features"].values())
        assert one["score"] == pytest.approx(adds + one["recall"])


def test_a_half_life_prefers_newer_texts_for_questions_about_now(
    http: TestClient, ingest: Ingest, collection: str
) -> None:
    ingest(*list_notices())
    first: Counter[tuple[str, float | None]] = Counter()
    dated: dict[str, list[object]] = {}
    for days in (None, 730.0):
        changed = http.patch(f"/collections/{collection}", json={"newer_half_life_days": days})
        assert changed.json()["newer_half_life_days"] == days
        for kind, text, document in list_questions():
            passages = _ask(http, collection, text)["passages"]
            first[kind, days] += passages[0]["source"]["document"] == document
            if kind == "then":  # another time than now: nothing changes, to the bit
                shown = [(one["passage_id"], one["score"]) for one in passages]
                assert dated.setdefault(text, shown) == shown
    assert first["now", 730.0] >= first["now", None] + 4
    assert first["detail", 730.0] >= first["detail", None] - 2
