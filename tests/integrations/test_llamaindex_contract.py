"""LlamaIndex's documented contract of retrievers, and the suite of adapters."""

import asyncio
import json
from collections.abc import Sequence

import pytest
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent, RetrievalStartEvent
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import RetrieverTool
from llama_index_instrumentation import get_dispatcher
from pydantic import Field

from engram_client.testing import AdapterResult, AdapterSuite
from engram_llamaindex import EngramRetriever

QUESTION = "Where was Marie Curie born?"


def results(nodes: Sequence[NodeWithScore]) -> list[AdapterResult]:
    return [AdapterResult(one.node.node_id, one.text, one.metadata, one.score) for one in nodes]


@pytest.mark.usefixtures("working")
class TestAdapter(AdapterSuite):
    @pytest.fixture(autouse=True)
    def _at_service(self, service: str) -> None:
        self.url = service

    def search(self, question: str, *, url: str, collection: str, k: int) -> Sequence[AdapterResult]:
        return results(EngramRetriever(url, collection=collection, top_k=k).retrieve(question))

    async def asearch(self, question: str, *, url: str, collection: str, k: int) -> Sequence[AdapterResult]:
        return results(await EngramRetriever(url, collection=collection, top_k=k).aretrieve(question))


@pytest.fixture
def retriever(service: str, curie: str) -> EngramRetriever:
    return EngramRetriever(service, collection=curie, top_k=3)


def test_retriever_has_the_library_s_type() -> None:
    """The one test that LlamaIndex's own integrations share."""
    assert BaseRetriever.__name__ in [base.__name__ for base in EngramRetriever.__mro__]


def test_a_query_bundle_is_taken_as_well_as_text(retriever: EngramRetriever) -> None:
    by_text, by_bundle = retriever.retrieve(QUESTION), retriever.retrieve(QueryBundle(QUESTION))
    assert [node.node_id for node in by_text] == [node.node_id for node in by_bundle]


def test_nodes_are_serialised_and_read_again(retriever: EngramRetriever) -> None:
    for node in retriever.retrieve(QUESTION):
        again = TextNode.from_dict(json.loads(json.dumps(node.node.to_dict())))
        assert (again.node_id, again.text, again.metadata) == (node.node_id, node.text, node.metadata)
        assert node.to_dict()["score"] == node.score


def test_callbacks_and_events_tell_of_a_retrieval(service: str, curie: str) -> None:
    class Heard(BaseEventHandler):
        events: list[BaseEvent] = Field(default_factory=list)

        def handle(self, event: BaseEvent, **_: object) -> None:
            self.events.append(event)

    heard, debug = Heard(), LlamaDebugHandler(print_trace_on_end=False)
    dispatcher = get_dispatcher()
    dispatcher.add_event_handler(heard)
    try:
        callbacks = CallbackManager([debug])
        EngramRetriever(service, collection=curie, callback_manager=callbacks).retrieve(QUESTION)
    finally:
        dispatcher.event_handlers.remove(heard)
    kinds = [type(event) for event in heard.events]
    assert kinds.index(RetrievalStartEvent) < kinds.index(RetrievalEndEvent)
    assert len(debug.get_event_pairs(CBEventType.RETRIEVE)) == 1


def test_retriever_works_in_an_async_engine_and_a_tool(retriever: EngramRetriever) -> None:
    llm = MockLLM()
    answer = asyncio.run(RetrieverQueryEngine.from_args(retriever, llm=llm).aquery(QUESTION))
    assert len(answer.source_nodes) == 3
    tool = RetrieverTool.from_defaults(retriever, description="Notes on Marie Curie.")
    assert answer.source_nodes[0].text in tool.call(QUESTION).content


def test_a_fusion_knows_a_passage_of_two_answers_as_one(retriever: EngramRetriever) -> None:
    fusion = QueryFusionRetriever(
        [retriever, retriever], llm=MockLLM(), num_queries=1, similarity_top_k=3, mode="reciprocal_rerank"
    )
    alone = retriever.retrieve(QUESTION)
    fused = fusion.retrieve(QUESTION)
    assert [node.node_id for node in fused] == [node.node_id for node in alone]
    assert fused[0].score == pytest.approx(2 / 60)  # 1 / (60 + rank from 0), twice


def test_an_unknown_argument_is_an_error() -> None:
    with pytest.raises(TypeError, match="similarity_top_k"):
        EngramRetriever(**{"similarity_top_k": 3})


def test_the_environment_names_the_service(service: str, curie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_URL", service)
    assert len(EngramRetriever(collection=curie, top_k=2).retrieve(QUESTION)) == 2
