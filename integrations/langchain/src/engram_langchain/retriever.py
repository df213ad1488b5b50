"""Passages as LangChain's documents."""

from typing import Any, Literal, cast

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, Field, SecretStr

from engram_client import AsyncEngram, Engram
from engram_client.documents import documents, text_with_context
from engram_client.models import QueryOut
from engram_client.requests import ContextIn, QueryIn


class EngramRetriever(BaseRetriever):
    """Finds documents by ``POST /query``, the best first.

    A document's id is the passage's, its metadata those of ``engram_client.documents``. ``invoke`` takes ``k`` and
    ``on_behalf_of`` too, for one question. Unknown arguments are errors.
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
    context: dict[str, Any] | None = None
    """Adds what stands around each passage to its text: ``{"section": True}``, or ``{"before": 1, "after": 1}``."""
    on_behalf_of: list[str] | None = None
    """Whom the retriever asks for, as ``user:ana`` and ``group:hr``; None: for the key."""

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        on_behalf_of: list[str] | None = None,
    ) -> list[Document]:
        options = self._build_options(k, on_behalf_of)
        with Engram(self.url, collection=self.collection, key=self._key()) as engram:
            return _documents(engram.query(query, **options), options["as"])

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        on_behalf_of: list[str] | None = None,
    ) -> list[Document]:
        options = self._build_options(k, on_behalf_of)
        async with AsyncEngram(self.url, collection=self.collection, key=self._key()) as engram:
            return _documents(await engram.query(query, **options), options["as"])

    def _build_options(self, k: int | None, on_behalf_of: list[str] | None) -> QueryIn:
        return {
            "top_k": self.k if k is None else k,
            "arm": {"memory": self.memory},
            "filter": self.filter,
            "context": cast(ContextIn | None, self.context),
            "as": self.on_behalf_of if on_behalf_of is None else on_behalf_of,
        }

    def _key(self) -> str | None:
        return None if self.key is None else self.key.get_secret_value()


def _documents(answer: QueryOut, on_behalf_of: list[str] | None) -> list[Document]:
    return [
        Document(text_with_context(passage), id=passage.passage_id, metadata=metadata)
        for passage, metadata in documents(answer, on_behalf_of)
    ]
