"""Sources of passages, and that every answer shows them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from engram.core.text.passage_source import PassageSource, read_source
from engram.storage.corpus.passages import StoredPassage
from tests.conftest import Ingest
from tests.support.strict_client import TestClient

TEMPLATE = "https://wiki.example.org/{source}#{heading}"
METADATA = {"source": "manual.pdf", "heading": ["Faults", "Exit codes"], "page": 4}
SOURCE = {
    "document": "manual.pdf",
    "heading": ["Faults", "Exit codes"],
    "page": 4,
    "link": "https://wiki.example.org/manual.pdf#Exit%20codes",
    "language": "en",
    "valid_from": None,
    "valid_until": None,
    "replaced_by": None,
}
QUESTION = "What does exit code 17 mean?"


@pytest.mark.parametrize(
    ("metadata", "title", "expected"),
    [
        (METADATA, None, PassageSource("manual.pdf", ("Faults", "Exit codes"), 4, None, "en")),
        ({"heading": "Faults"}, "Manual", PassageSource("Manual", ("Faults",), None, None, "en")),
        ({}, None, PassageSource("a#1", (), None, None, "en")),
        (
            {"source": 7, "heading": [1, None, "x"], "page": True},
            None,
            PassageSource("a#1", ("x",), None, None, "en"),
        ),
        ({"source": " ", "heading": {}, "page": -1}, None, PassageSource("a#1", (), None, None, "en")),
    ],
)
def test_a_source_is_read_from_whatever_metadata_hold(
    metadata: Mapping[str, Any], title: str | None, expected: PassageSource
) -> None:
    assert read_source(StoredPassage(1, "a#1", title, "text", dict(metadata), "en"), None) == expected


def test_a_passage_of_a_document_has_its_source() -> None:
    passage = StoredPassage(1, "a#1", "Manual", "text", METADATA, "en", "manuals/hx300.pdf")
    assert read_source(passage, None).document == "manuals/hx300.pdf"


def test_a_source_as_one_line() -> None:
    source = PassageSource("manual.pdf", ("Faults", "Exit codes"), 4, None, "en")
    assert str(source) == "manual.pdf > Faults > Exit codes, page 4"
    assert str(replace(source, page=None, heading=())) == "manual.pdf"


@pytest.fixture
def linked(http: TestClient, ingest: Ingest, collection: str) -> str:
    """A collection of one passage, with links."""
    ingest(
        {
            "id": "manual.pdf#1",
            "title": "HX300 service manual",
            "language": "en",
            "text": "Exit code 17 means that the passphrase of the pump is wrong.",
            "metadata": METADATA,
        }
    )
    changed = http.patch(f"/collections/{collection}", json={"link_template": TEMPLATE})
    assert changed.json()["link_template"] == TEMPLATE
    return collection


@pytest.mark.wing("frontends", "sessions")
def test_every_route_that_answers_says_where_a_passage_comes_from(http: TestClient, linked: str) -> None:
    answer = http.post("/query", json={"collection": linked, "query": QUESTION}).json()
    assert answer["passages"][0]["source"] == SOURCE
    kept = http.get(f"/queries/{answer['query_id']}", params={"collection": linked}).json()
    assert kept["passages"][0]["source"] == SOURCE
    assert http.get("/passages/manual.pdf%231", params={"collection": linked}).json()["source"] == SOURCE
    assert http.get(f"/collections/{linked}/passages").json()["passages"][0]["source"] == SOURCE
    chat = http.post(
        "/v1/chat/completions", json={"model": linked, "messages": [{"role": "user", "content": QUESTION}]}
    ).json()
    assert chat["engram"]["citations"][0]["source"] == SOURCE
    line = f"[1] manual.pdf > Faults > Exit codes, page 4 {SOURCE['link']}"
    assert chat["choices"][0]["message"]["content"].splitlines()[-1] == line
    dify = {"knowledge_id": linked, "query": QUESTION, "retrieval_setting": {"top_k": 1}}
    record = http.post("/retrieval", json=dify).json()["records"][0]
    known = {name: value for name, value in SOURCE.items() if value is not None}
    assert known.items() <= record["metadata"].items()
    page = http.post(f"/v1/vector_stores/{linked}/search", json={"query": QUESTION}).json()
    assert page["data"][0]["filename"] == "manual.pdf"
    assert page["data"][0]["attributes"]["link"] == SOURCE["link"]
    texts = ["Exit code 17 means that the passphrase of the pump is wrong.", "Unknown."]
    ranked = http.post("/v1/rerank", json={"model": linked, "query": QUESTION, "documents": texts}).json()
    assert {one["index"]: one["source"] for one in ranked["results"]} == {0: SOURCE, 1: None}
    begun = http.post("/sessions", json={"collection": linked, "question": QUESTION, "planner": "pool"})
    session = http.get(f"/sessions/{begun.json()['session_id']}", params={"collection": linked}).json()
    assert all(one["source"] == SOURCE for one in (*session["passages"], *session["evidence"]))


@pytest.mark.parametrize("template", ["javascript:{source}", "https://{source}/x", "https://wiki/{document}"])
def test_a_template_that_would_lead_elsewhere_is_refused(http: TestClient, curie: str, template: str) -> None:
    refused = http.patch(f"/collections/{curie}", json={"link_template": template})
    assert refused.status_code == 422
    assert "link_template" in refused.text


def test_links_end_with_the_template(http: TestClient, linked: str) -> None:
    assert http.patch(f"/collections/{linked}", json={"link_template": None}).json()["link_template"] is None
    answer = http.post("/query", json={"collection": linked, "query": QUESTION}).json()
    assert answer["passages"][0]["source"] == {**SOURCE, "link": None}
