"""LlamaIndex: its documented contract of retrievers, its engines, verdicts, and the suite of adapters."""

import asyncio
import json
from collections.abc import Sequence

import pytest
from llama_index.core import Settings as LlamaIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager, CBEventType, LlamaDebugHandler
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent, RetrievalStartEvent
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import RetrieverTool
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index_instrumentation import get_dispatcher
from pydantic import Field

from engram_client import Engram
from engram_client.testing import AdapterResult, AdapterSuite
from engram_llamaindex import EngramRetriever, mark_helpful
from tests.conftest import CURIE, Ingest

QUESTION = "Where was Marie Curie born?"


@pytest.fixture
def retriever(service: str, curie: str) -> EngramRetriever:
    return EngramRetriever(service, collection=curie, top_k=3)


def test_passages_are_nodes(retriever: EngramRetriever, curie: str) -> None:
    nodes = retriever.retrieve(QUESTION)
    assert [node.metadata["engram"]["rank"] for node in nodes] == [1, 2, 3]
    assert [node.score for node in nodes] == sorted((node.score for node in nodes), reverse=True)
    best = nodes[0]
    assert best.text == next(passage["text"] for passage in CURIE if passage["id"] == best.node.node_id)
    assert best.metadata["engram"]["collection"] == curie
    again = asyncio.run(retriever.aretrieve(QUESTION))
    assert [node.node.node_id for node in again] == [node.node.node_id for node in nodes]


def test_a_model_is_shown_the_passage_and_its_metadata_only(service: str, curie: str, ingest: Ingest) -> None:
    ingest({"id": "kept", "text": "Titan has lakes of methane.", "metadata": {"source": "probe"}})
    retriever = EngramRetriever(service, collection=curie, filters={"source": "probe"})
    (node,) = retriever.retrieve("What does Titan have?")
    assert node.node.get_content(MetadataMode.LLM) == "source: probe\n\nTitan has lakes of methane."


def test_retriever_serves_a_query_engine_and_takes_its_verdict(
    retriever: EngramRetriever, service: str, curie: str
) -> None:
    LlamaIndex.llm = MockLLM()
    engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
    answer = engine.query(QUESTION)
    assert len(answer.source_nodes) == 3
    with Engram(service) as engram:
        first, again = (mark_helpful(engram, answer.source_nodes[:1], judge="thumbs") for _ in range(2))
    assert [(one.judge, one.collection) for one in first] == [("thumbs", curie)]
    assert [one.feedback_id for one in first] == [one.feedback_id for one in again]


def test_filters_of_llamaindex_are_understood(service: str, ingest: Ingest, collection: str) -> None:
    ingest(*(dict(p) | {"metadata": {"n": n, "tags": ["x", str(n)]}} for n, p in enumerate(CURIE)))

    def list_places(*filters: MetadataFilter, condition: FilterCondition = FilterCondition.AND) -> set[int]:
        narrowed = MetadataFilters(filters=list(filters), condition=condition)
        retriever = EngramRetriever(service, collection=collection, filters=narrowed)
        return {node.metadata["n"] for node in retriever.retrieve("Who?")}

    late = MetadataFilter(key="n", value=2, operator=FilterOperator.GT)
    tagged = MetadataFilter(key="tags", value=["x", "4"], operator=FilterOperator.ALL)
    assert list_places(late) == {3, 4}
    assert list_places(late, tagged) == {4}
    assert list_places(late, condition=FilterCondition.NOT) == {0, 1, 2}
    assert list_places(MetadataFilter(key="n", value=None, operator=FilterOperator.IS_EMPTY)) == set()
    with pytest.raises(ValueError, match="text_match_insensitive"):
        list_places(MetadataFilter(key="tags", value="X", operator=FilterOperator.TEXT_MATCH_INSENSITIVE))


def test_nodes_of_others_are_refused(service: str) -> None:
    with Engram(service) as engram, pytest.raises(KeyError, match="engram"):
        mark_helpful(engram, [NodeWithScore(node=TextNode(text="a"), score=1.0)])


PARTS = ("The leave begins in May.", "It ends in June.", "The boss signs it.")


def test_nodes_may_have_their_context(service: str, ingest: Ingest, collection: str) -> None:
    ingest(*({"id": f"leave#{n}", "document": "leave", "text": text} for n, text in enumerate(PARTS)))
    retriever = EngramRetriever(service, collection=collection, context={"section": True})
    assert {one.text for one in retriever.retrieve(QUESTION)} == {"\n\n".join(PARTS)}


def test_a_retriever_asks_for_somebody(service: str, ingest: Ingest, collection: str) -> None:
    ingest(
        {"id": "open", "text": "The office opens at eight.", "readers": None},
        {"id": "pay", "text": "Marie Curie earns 7,000 crowns.", "readers": ["user:ana"]},
    )
    ana, bo = (
        EngramRetriever(service, collection=collection, on_behalf_of=[one]) for one in ("user:ana", "user:bo")
    )
    found = {one.node.node_id: one for one in ana.retrieve(QUESTION)}
    assert set(found) == {"open", "pay"}
    assert [one.node.node_id for one in bo.retrieve(QUESTION)] == ["open"]
    with Engram(service, collection=collection) as engram:
        (verdict,) = mark_helpful(engram, [found["pay"]])
        assert engram.verdict(verdict.feedback_id).collection == collection


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
