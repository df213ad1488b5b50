"""Passages as LangChain's documents."""

from typing import Any, Literal

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, SecretStr

from engram_client import AsyncEngram, Engram
from engram_client.models import QueryOut


class EngramRetriever(BaseRetriever):
    """Finds documents by ``POST /query``, the best first.

    A document's id is the passage's. Its metadata are the passage's own and, under ``engram``, the ``query_id``
    that a verdict is given on, the ``collection``, the ``title``, the ``rank`` from 1 on, the ``sentences`` that
    speak for it, each with its ``sentence_id`` and ``text``, and ``enough``, the probability that the answer holds
    all the evidence.
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
        Document(
            passage.text,
            id=passage.passage_id,
            metadata={
                **passage.metadata,
                "engram": {
                    "query_id": answer.query_id,
                    "collection": answer.collection,
                    "title": passage.title,
                    "rank": rank,
                    "sentences": [{"sentence_id": s.sentence_id, "text": s.text} for s in passage.sentences],
                    "enough": answer.enough,
                },
            },
        )
        for rank, passage in enumerate(answer.passages, start=1)
    ]
