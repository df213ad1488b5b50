"""Passages as LangChain's documents."""

from typing import Any, Literal

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field, SecretStr

from engram_client import AsyncEngram, Engram
from engram_client.documents import documents
from engram_client.models import QueryOut


class EngramRetriever(BaseRetriever):
    """Finds documents by ``POST /query``, the best first.

    A document's id is the passage's, its metadata those of ``engram_client.documents``. ``invoke`` takes ``k`` too,
    for one question. Unknown arguments are errors.
    """

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    url: str | None = None
    """The service's address; by default ``ENGRAM_URL``, else this machine."""
    collection: str = "default"
    key: SecretStr | None = None
    """The access key; by default ``ENGRAM_ACCESS_KEY``."""
    k: int = Field(default=5, ge=1, le=100)
    """Documents wanted."""
    memory: Literal["read", "off"] = "read"
    filter: dict[str, Any] | None = None
    """Only passages whose metadata meet this: ``{"year": {"$gte": 1990}}``, see ``POST /query``."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        with Engram(self.url, collection=self.collection, key=self._key()) as engram:
            return _documents(
                engram.query(query, top_k=self._count(k), arm={"memory": self.memory}, filter=self.filter)
            )

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, k: int | None = None
    ) -> list[Document]:
        async with AsyncEngram(self.url, collection=self.collection, key=self._key()) as engram:
            return _documents(
                await engram.query(query, top_k=self._count(k), arm={"memory": self.memory}, filter=self.filter)
            )

    def _count(self, k: int | None) -> int:
        return self.k if k is None else k

    def _key(self) -> str | None:
        return None if self.key is None else self.key.get_secret_value()


def _documents(answer: QueryOut) -> list[Document]:
    return [
        Document(passage.text, id=passage.passage_id, metadata=metadata) for passage, metadata in documents(answer)
    ]
