"""The retriever and the verdicts, in Haystack's own pipelines."""

import asyncio
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.utils import Secret

from engram_client import Engram, NotFoundError
from engram_haystack import EngramRetriever, mark_helpful
from tests.conftest import CURIE, Ingest

QUESTION = {"retriever": {"query": "Where was Marie Curie born?"}}


@pytest.fixture
def retriever(service: str, curie: str) -> EngramRetriever:
    return EngramRetriever(service, curie, top_k=3)


def test_a_pipeline_finds_documents(retriever: EngramRetriever, curie: str) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", retriever)
    documents = pipeline.run(QUESTION)["retriever"]["documents"]
    assert [document.meta["engram"]["rank"] for document in documents] == [1, 2, 3]
    best = documents[0]
    assert best.content == next(passage["text"] for passage in CURIE if passage["id"] == best.id)
    fewer = pipeline.run({"retriever": QUESTION["retriever"] | {"top_k": 1}})["retriever"]["documents"]
    assert [document.id for document in fewer] == [best.id]


def test_filters_of_haystack_are_understood(service: str, ingest: Ingest, collection: str) -> None:
    ingest(*(dict(p) | {"metadata": {"n": n}} for n, p in enumerate(CURIE)))
    retriever = EngramRetriever(service, collection, filters={"n": {"$lt": 2}})

    def list_places(filters: dict[str, Any] | None) -> set[int]:
        return {document.meta["n"] for document in retriever.run("Who?", filters=filters)["documents"]}

    late = {"field": "meta.n", "operator": ">", "value": 2}
    assert list_places(None) == {0, 1}
    assert list_places(late) == {3, 4}
    assert list_places({"operator": "NOT", "conditions": [late]}) == {0, 1, 2}
    first = {"field": "meta.n", "operator": "in", "value": [0]}
    assert list_places({"operator": "OR", "conditions": [late, first]}) == {0, 3, 4}
    assert list_places({"field": "meta.other", "operator": "==", "value": None}) == {0, 1, 2, 3, 4}
    for wrong in ({"field": "id", "operator": "==", "value": 1}, late | {"operator": "~"}):
        with pytest.raises(ValueError, match=r"metadata|unknown operator"):
            list_places(wrong)


def test_a_pipeline_that_is_awaited_finds_the_same(retriever: EngramRetriever) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", retriever)
    found = asyncio.run(pipeline.run_async(QUESTION))["retriever"]["documents"]
    assert [document.id for document in found] == [
        document.id for document in retriever.run(**QUESTION["retriever"])["documents"]
    ]


def test_a_saved_pipeline_keeps_no_key(retriever: EngramRetriever, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_ACCESS_KEY", "engram_secret")
    pipeline = Pipeline()
    pipeline.add_component("retriever", retriever)
    saved = pipeline.dumps()
    assert "engram_secret" not in saved
    loaded = Pipeline.loads(saved, allowed_modules=["engram_haystack.*"]).get_component("retriever")
    assert isinstance(loaded, EngramRetriever)
    assert (loaded.url, loaded.collection, loaded.top_k) == (retriever.url, retriever.collection, 3)
    assert loaded.key == Secret.from_env_var("ENGRAM_ACCESS_KEY", strict=False)


def test_a_thumb_counts_once(retriever: EngramRetriever, service: str, curie: str) -> None:
    found = retriever.run("Who discovered radium?")["documents"]
    with Engram(service) as engram:
        first, again = (mark_helpful(engram, found[:2], judge="thumbs") for _ in range(2))
        assert [(one.judge, one.collection) for one in first] == [("thumbs", curie)]
        assert [one.feedback_id for one in first] == [one.feedback_id for one in again]
        with pytest.raises(KeyError, match="engram"):
            mark_helpful(engram, [Document(content="a")])


def test_service_refusal_raises(service: str) -> None:
    with pytest.raises(NotFoundError):
        EngramRetriever(service, "nowhere").run("Who discovered radium?")


PARTS = ("The leave begins in May.", "It ends in June.", "The boss signs it.")


def test_documents_may_have_their_context(service: str, ingest: Ingest, collection: str) -> None:
    ingest(*({"id": f"leave#{n}", "document": "leave", "text": text} for n, text in enumerate(PARTS)))
    retriever = EngramRetriever(service, collection, context={"section": True})
    assert {one.content for one in retriever.run("When is leave?")["documents"]} == {"\n\n".join(PARTS)}


def test_a_retriever_asks_for_somebody(service: str, ingest: Ingest, collection: str) -> None:
    ingest(
        {"id": "open", "text": "The office opens at eight.", "readers": None},
        {"id": "pay", "text": "Marie Curie earns 7,000 crowns.", "readers": ["user:ana"]},
    )
    ana, bo = (EngramRetriever(service, collection, on_behalf_of=[one]) for one in ("user:ana", "user:bo"))
    found = {one.id: one for one in ana.run("What does she earn?")["documents"]}
    assert set(found) == {"open", "pay"}
    assert [one.id for one in bo.run("What does she earn?")["documents"]] == ["open"]
    assert bo.run("What does she earn?", on_behalf_of=["user:ana"])["documents"][0].id == "pay"
    with Engram(service, collection=collection) as engram:
        (verdict,) = mark_helpful(engram, [found["pay"]])
        assert engram.verdict(verdict.feedback_id).collection == collection
