"""LangChain's own tests of retrievers, and the suite of adapters."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests
from pydantic import ValidationError

from engram_client import InvalidRequestError
from engram_client.testing import AdapterResult, AdapterSuite
from engram_langchain import EngramRetriever

QUESTION = "Where was Marie Curie born?"


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
