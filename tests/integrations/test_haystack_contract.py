"""Haystack's documented contract of components, and the suite of adapters."""

import asyncio
from collections.abc import Sequence

import pytest
from haystack import Document, Pipeline
from haystack.components.joiners import DocumentJoiner
from haystack.core.errors import PipelineRuntimeError
from haystack.core.serialization import component_from_dict, component_to_dict
from haystack.utils import Secret

from engram_client import InvalidRequestError
from engram_client.testing import AdapterResult, AdapterSuite
from engram_haystack import EngramRetriever

QUESTION = "Where was Marie Curie born?"


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

    question = {"retriever": {"query": QUESTION}}
    found = pipeline().run(question)["joiner"]["documents"]
    awaited = asyncio.run(pipeline().run_async(question))["joiner"]["documents"]
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
        pipeline.run({"retriever": {"query": QUESTION}})


def test_the_environment_names_the_service(service: str, curie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_URL", service)
    assert len(EngramRetriever(collection=curie, top_k=2).run(QUESTION)["documents"]) == 2
