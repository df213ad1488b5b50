"""LangChain: its own tests of retrievers, its runs, verdicts, and the suite of adapters."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_tests.integration_tests import RetrieversIntegrationTests
from pydantic import ValidationError

from engram.composition.container import Application
from engram_client import Engram, InvalidRequestError
from engram_client.testing import AdapterResult, AdapterSuite
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


@pytest.mark.anyio  # the one that is awaited
class TestLangChain(RetrieversIntegrationTests):
    """All five, none overridden or expected to fail."""

    @pytest.fixture(autouse=True)
    def _at_service(self, service: str, curie: str) -> None:
        self._params = {"url": service, "collection": curie}

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return EngramRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return self._params

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


@pytest.mark.usefixtures("working")
class TestAdapter(AdapterSuite):
    @pytest.fixture(autouse=True)
    def _at_service(self, service: str) -> None:
        self.url = service

    def search(self, question: str, *, url: str, collection: str, k: int) -> Sequence[AdapterResult]:
        retriever = EngramRetriever(url=url, collection=collection, k=k)
        return [AdapterResult(one.id, one.page_content, one.metadata) for one in retriever.invoke(question)]

    async def asearch(self, question: str, *, url: str, collection: str, k: int) -> Sequence[AdapterResult]:
        retriever = EngramRetriever(url=url, collection=collection, k=k)
        return [AdapterResult(one.id, one.page_content, one.metadata) for one in await retriever.ainvoke(question)]


@pytest.mark.parametrize(
    "unknown", [{"top_k": 3}, {"collections": "notes"}, {"k": 0}, {"k": 101}, {"memory": "on"}]
)
def test_an_unknown_or_odd_argument_is_an_error(unknown: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        EngramRetriever(**unknown)


def test_an_unknown_or_odd_argument_of_one_question_is_an_error(service: str, curie: str) -> None:
    retriever = EngramRetriever(url=service, collection=curie)
    with pytest.raises(TypeError, match="top_k"):
        retriever.invoke(QUESTION, top_k=1)
    with pytest.raises(InvalidRequestError):
        retriever.invoke(QUESTION, k=0)
    with pytest.raises(InvalidRequestError):
        asyncio.run(retriever.ainvoke(QUESTION, k=101))


def test_k_is_bound_in_a_chain(service: str, curie: str) -> None:
    assert len(EngramRetriever(url=service, collection=curie).bind(k=1).invoke(QUESTION)) == 1


def test_the_environment_names_the_service(service: str, curie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENGRAM_URL", service)
    assert EngramRetriever(collection=curie, k=2).invoke(QUESTION)
