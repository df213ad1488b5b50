"""Passages as LangChain's documents."""

from typing import Any, Literal

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, SecretStr

from engram_client import AsyncEngram, Engram
from engram_client.documents import documents
from engram_client.models import QueryOut


class EngramRetriever(BaseRetriever):
    """Finds documents by ``POST /query``, the best first.

    A document's id is the passage's, its metadata those of ``engram_client.documents``.
    """

    url: str = "http://127.0.0.1:8000"
    collection: str = "default"
    key: SecretStr | None = None
    top_k: int = Field(default=5, ge=1, le=100)
    memory: Literal["read", "off"] = "read"
    filter: dict[str, Any] | None = None
    """Only passages whose metadata contain this object."""

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        with Engram(self.url, collection=self.collection, key=self._key()) as engram:
            return _documents(
                engram.query(query, top_k=self.top_k, arm={"memory": self.memory}, filter=self.filter)
            )

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        async with AsyncEngram(self.url, collection=self.collection, key=self._key()) as engram:
            return _documents(
                await engram.query(query, top_k=self.top_k, arm={"memory": self.memory}, filter=self.filter)
            )

    def _key(self) -> str | None:
        return None if self.key is None else self.key.get_secret_value()


def _documents(answer: QueryOut) -> list[Document]:
    return [
        Document(passage.text, id=passage.passage_id, metadata=metadata) for passage, metadata in documents(answer)
    ]
