"""The retriever and the verdicts, in LangChain's own runs."""

import asyncio
from collections.abc import Iterator
from uuid import uuid4

import pytest
from langchain_core.runnables import RunnableLambda

from engram.composition.container import Application
from engram_client import Engram, NotFoundError
from engram_langchain import EngramFeedback, EngramRetriever
from tests.conftest import CURIE, Ingest

QUESTION = "Where was Marie Curie born?"


@pytest.fixture
def retriever(service: str, curie: str) -> EngramRetriever:
    return EngramRetriever(url=service, collection=curie, k=3)


@pytest.fixture
def heard(service: str, curie: str) -> Iterator[EngramFeedback]:
    with Engram(service) as engram:
        yield EngramFeedback(engram, judge="thumbs")


def test_passages_are_documents(retriever: EngramRetriever, curie: str) -> None:
    documents = retriever.invoke(QUESTION)
    assert [document.metadata["engram"]["rank"] for document in documents] == list(range(1, len(documents) + 1))
    assert {document.id for document in documents} <= {passage["id"] for passage in CURIE}
    best = documents[0]
    assert best.page_content == next(passage["text"] for passage in CURIE if passage["id"] == best.id)
    assert best.metadata["engram"]["collection"] == curie
    assert all(sentence["text"] in best.page_content for sentence in best.metadata["engram"]["sentences"])
    assert [d.id for d in asyncio.run(retriever.ainvoke(QUESTION))] == [d.id for d in documents]
    assert len(retriever.batch([QUESTION, "Who discovered radium?"])) == 2


def test_metadata_filter_and_come_back(retriever: EngramRetriever, ingest: Ingest, curie: str) -> None:
    ingest({"id": "kept", "text": "Titan has lakes of methane.", "metadata": {"source": "probe"}})
    only = retriever.model_copy(update={"filter": {"source": "probe"}})
    assert [(d.id, d.metadata["source"]) for d in only.invoke("What does Titan have?")] == [("kept", "probe")]


def test_a_thumb_reaches_the_queries_of_its_run(
    retriever: EngramRetriever, heard: EngramFeedback, application: Application, curie: str
) -> None:
    chain = retriever | RunnableLambda(lambda documents: documents[0].id)
    run = uuid4()
    best = chain.invoke(QUESTION, {"callbacks": [heard], "run_id": run})
    chain.invoke("Who discovered radium?", {"callbacks": [heard], "run_id": uuid4()})
    assert len(heard.queries(run)) == 1

    first, again = heard.mark_helpful(run, [best]), heard.mark_helpful(run, [best])
    assert [one.feedback_id for one in first] == [one.feedback_id for one in again]
    assert [(one.judge, one.collection) for one in first] == [("thumbs", curie)]
    assert heard.mark_unhelpful(run)[0].feedback_id != first[0].feedback_id
    with pytest.raises(KeyError, match="asked nothing"):
        heard.mark_helpful(uuid4(), [best])


def test_only_the_latest_runs_are_remembered(retriever: EngramRetriever, service: str) -> None:
    with Engram(service) as engram:
        short = EngramFeedback(engram, remember=1)
        runs = [uuid4(), uuid4()]
        for run in runs:
            retriever.invoke(QUESTION, {"callbacks": [short]}, run_id=run)
        assert short.queries(runs[1])
        with pytest.raises(KeyError):
            short.queries(runs[0])


def test_service_refusal_raises(retriever: EngramRetriever) -> None:
    with pytest.raises(NotFoundError):
        retriever.model_copy(update={"collection": "nowhere"}).invoke(QUESTION)


PARTS = ("The leave begins in May.", "It ends in June.", "The boss signs it.")


def test_documents_may_have_their_context(service: str, ingest: Ingest, collection: str) -> None:
    ingest(*({"id": f"leave#{n}", "document": "leave", "text": text} for n, text in enumerate(PARTS)))
    retriever = EngramRetriever(url=service, collection=collection, context={"section": True})
    assert {one.page_content for one in retriever.invoke(QUESTION)} == {"\n\n".join(PARTS)}


def test_a_retriever_asks_for_somebody(service: str, ingest: Ingest, collection: str) -> None:
    ingest(
        {"id": "open", "text": "The office opens at eight.", "readers": None},
        {"id": "pay", "text": "Marie Curie earns 7,000 crowns.", "readers": ["user:ana"]},
    )
    ana, bo = (
        EngramRetriever(url=service, collection=collection, on_behalf_of=[one]) for one in ("user:ana", "user:bo")
    )
    found = {one.id: one for one in ana.invoke(QUESTION)}
    assert set(found) == {"open", "pay"}
    assert [one.id for one in bo.invoke(QUESTION)] == ["open"]
    with Engram(service, collection=collection) as engram:
        thumbs = EngramFeedback(engram)
        bo.invoke(QUESTION, {"callbacks": [thumbs]}, run_id=(run := uuid4()), on_behalf_of=["user:ana"])
        (verdict,) = thumbs.mark_helpful(run, ["pay"])
        assert engram.verdict(verdict.feedback_id).collection == collection
