"""The retriever and the verdicts, in LlamaIndex's own engine."""

import asyncio

import pytest
from llama_index.core import Settings as LlamaIndex
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from llama_index.core.vector_stores import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from engram_client import Engram, NotFoundError
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


def test_service_refusal_raises(service: str) -> None:
    with pytest.raises(NotFoundError):
        EngramRetriever(service, collection="nowhere").retrieve(QUESTION)


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
