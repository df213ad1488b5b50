"""Haystack: its documented contract of components, its pipelines, verdicts, and the suite of adapters."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.components.joiners import DocumentJoiner
from haystack.core.errors import PipelineRuntimeError
from haystack.core.serialization import component_from_dict, component_to_dict
from haystack.utils import Secret

from engram_client import Engram, InvalidRequestError
from engram_client.testing import AdapterResult, AdapterSuite
from engram_haystack import EngramRetriever, mark_helpful
from tests.conftest import CURIE, Ingest

QUESTION = "Where was Marie Curie born?"
ASKED = {"retriever": {"query": QUESTION}}


@pytest.fixture
def retriever(service: str, curie: str) -> EngramRetriever:
    return EngramRetriever(service, curie, top_k=3)


def test_a_pipeline_finds_documents(retriever: EngramRetriever, curie: str) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", retriever)
    documents = pipeline.run(ASKED)["retriever"]["documents"]
    assert [document.meta["engram"]["rank"] for document in documents] == [1, 2, 3]
    best = documents[0]
    assert best.content == next(passage["text"] for passage in CURIE if passage["id"] == best.id)
    fewer = pipeline.run({"retriever": {"query": QUESTION, "top_k": 1}})["retriever"]["documents"]
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


def results(documents: Sequence[Document]) -> list[AdapterResult]:
    return [AdapterResult(one.id, one.content or "", one.meta, one.score) for one in documents]


@pytest.mark.usefixtures("working")
class TestAdapter(AdapterSuite):
    @pytest.fixture(autouse=True)
    def _at_service(self, service: str) -> None:
        self.url = service

    def search(self, question: str, *, url: str, collection: str, k: int) -> Sequence[AdapterResult]:
        return results(EngramRetriever(url, collection, top_k=k).run(question)["documents"])

    async def asearch(self, question: str, *, url: str, collection: str, k: int) -> Sequence[AdapterResult]:
        found = await EngramRetriever(url, collection, top_k=k).run_async(question)
        return results(found["documents"])


def test_to_dict_names_the_type_and_all_arguments_and_from_dict_reads_them() -> None:
    made = EngramRetriever(
        "http://x",
        "notes",
        top_k=7,
        memory="off",
        filters={"topic": "space"},
        context={"section": True},
        on_behalf_of=["user:ana"],
    )
    stored = made.to_dict()
    assert stored == {
        "type": "engram_haystack.retriever.EngramRetriever",
        "init_parameters": {
            "url": "http://x",
            "collection": "notes",
            "key": {"type": "env_var", "env_vars": ["ENGRAM_ACCESS_KEY"], "strict": False},
            "top_k": 7,
            "memory": "off",
            "filters": {"topic": "space"},
            "context": {"section": True},
            "on_behalf_of": ["user:ana"],
        },
    }
    assert EngramRetriever.from_dict(stored).to_dict() == made.to_dict()


def test_haystacks_own_serialisation_keeps_it() -> None:
    made = EngramRetriever(collection="notes")
    stored = component_to_dict(made, "retriever")
    assert component_from_dict(EngramRetriever, stored, "retriever").to_dict() == made.to_dict()


def test_a_key_that_is_written_down_is_not_serialised() -> None:
    with pytest.raises(ValueError, match="token"):
        EngramRetriever(key=Secret.from_token("engram_secret")).to_dict()


def test_sockets_are_typed() -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", EngramRetriever())
    taken = pipeline.inputs()["retriever"]
    assert (taken["query"]["type"], taken["query"]["is_mandatory"]) == (str, True)
    assert taken["top_k"]["is_mandatory"] is False
    assert pipeline.outputs()["retriever"]["documents"]["type"] == list[Document]


def test_retriever_works_in_sync_and_async_pipelines(service: str, curie: str) -> None:
    def pipeline() -> Pipeline:
        made = Pipeline()
        made.add_component("retriever", EngramRetriever(service, curie, top_k=2))
        made.add_component("joiner", DocumentJoiner())
        made.connect("retriever.documents", "joiner.documents")
        return Pipeline.loads(made.dumps(), allowed_modules=["engram_haystack.*"])

    found = pipeline().run(ASKED)["joiner"]["documents"]
    awaited = asyncio.run(pipeline().run_async(ASKED))["joiner"]["documents"]
    assert len(found) == 2
    assert [one.id for one in awaited] == [one.id for one in found]


@pytest.mark.parametrize("top_k", [0, 101])
def test_an_odd_number_of_results_is_refused_and_not_replaced(service: str, curie: str, top_k: int) -> None:
    with pytest.raises(InvalidRequestError):
        EngramRetriever(service, curie).run(QUESTION, top_k=top_k)


def test_a_pipeline_names_the_component_that_failed(service: str) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", EngramRetriever(service, "nowhere"))
    with pytest.raises(PipelineRuntimeError, match="retriever"):
        pipeline.run(ASKED)


def test_the_environment_names_the_service(service: str, curie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_URL", service)
    assert len(EngramRetriever(collection=curie, top_k=2).run(QUESTION)["documents"]) == 2
