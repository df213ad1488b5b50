"""Passages as Haystack's documents."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.utils import Secret, deserialize_secrets_inplace

from engram_client import AsyncEngram, Engram
from engram_client import documents as kept
from engram_client.models import FeedbackOut, QueryOut
from engram_client.requests import ContextIn, QueryIn
from engram_haystack.filters import to_engram

KEY = Secret.from_env_var("ENGRAM_ACCESS_KEY", strict=False)
"""The access key, where one is needed."""


@component
class EngramRetriever:
    """Finds documents by ``POST /query``, the best first.

    A document's id is the passage's, its score the ranking's, its ``meta`` those of ``engram_client.documents``.
    """

    def __init__(
        self,
        url: str | None = None,
        collection: str = "default",
        key: Secret = KEY,
        top_k: int = 5,
        memory: Literal["read", "off"] = "read",
        filters: dict[str, Any] | None = None,
        context: ContextIn | None = None,
        on_behalf_of: list[str] | None = None,
    ) -> None:
        """
        Args:
            url: where the service is; by default ``ENGRAM_URL`` where the pipeline runs, else this machine.
            collection: what is asked.
            key: the access key; by default what ``ENGRAM_ACCESS_KEY`` says, if anything.
            top_k: documents wanted, 1 to 100.
            memory: ``off``: as if nothing had been learned.
            filters: only passages whose metadata meet this filter, Haystack's or Engram's own.
            context: adds what stands around each passage to its content: ``{"section": True}``, or
                ``{"before": 1, "after": 1}``.
            on_behalf_of: whom the retriever asks for, as ``user:ana`` and ``group:hr``; None: for the key.

        Raises:
            ValueError: Haystack's filter compares something else than metadata, or has an unknown operator.
        """
        self.url, self.collection, self.key = url, collection, key
        self.top_k, self.memory, self.filters = top_k, memory, filters
        self.context, self.on_behalf_of = context, on_behalf_of
        to_engram(filters)

    def to_dict(self) -> dict[str, Any]:
        """Serialise for a pipeline; of the access key only its source is stored."""
        kept_as: dict[str, Any] = default_to_dict(
            self,
            url=self.url,
            collection=self.collection,
            key=self.key.to_dict(),
            top_k=self.top_k,
            memory=self.memory,
            filters=self.filters,
            context=self.context,
            on_behalf_of=self.on_behalf_of,
        )
        return kept_as

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "EngramRetriever":
        """Restore from ``to_dict``."""
        deserialize_secrets_inplace(data["init_parameters"], keys=["key"])
        made: EngramRetriever = default_from_dict(cls, data)
        return made

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        on_behalf_of: list[str] | None = None,
    ) -> dict[str, list[Document]]:
        """Ask the question, with ``filters``, ``top_k`` and ``on_behalf_of`` in place of the retriever's own.

        Raises:
            EngramError: as the client.
            ValueError: as ``EngramRetriever`` does.
        """
        options = self._build_options(filters, top_k, on_behalf_of)
        with Engram(self.url, collection=self.collection, key=self.key.resolve_value()) as engram:
            answer = engram.query(query, **options)
        return {"documents": _documents(answer, options["as"])}

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        on_behalf_of: list[str] | None = None,
    ) -> dict[str, list[Document]]:
        """Run without blocking, see ``run``."""
        options = self._build_options(filters, top_k, on_behalf_of)
        async with AsyncEngram(self.url, collection=self.collection, key=self.key.resolve_value()) as engram:
            answer = await engram.query(query, **options)
        return {"documents": _documents(answer, options["as"])}

    def _build_options(
        self, filters: dict[str, Any] | None, top_k: int | None, on_behalf_of: list[str] | None
    ) -> QueryIn:
        return {
            "top_k": self.top_k if top_k is None else top_k,
            "arm": {"memory": self.memory},
            "filter": to_engram(self.filters if filters is None else filters),
            "context": self.context,
            "as": self.on_behalf_of if on_behalf_of is None else on_behalf_of,
        }


def mark_helpful(engram: Engram, documents: Iterable[Document], *, judge: str | None = None) -> list[FeedbackOut]:
    """These documents helped; of others nothing is said.

    Raises:
        KeyError: a document is not from an ``EngramRetriever``.
        EngramError: as the client.
    """
    return kept.mark_helpful(engram, [document.meta for document in documents], judge=judge)


def _documents(answer: QueryOut, on_behalf_of: Sequence[str] | None) -> list[Document]:
    return [
        Document(id=passage.passage_id, content=kept.text_with_context(passage), meta=metadata, score=passage.score)
        for passage, metadata in kept.documents(answer, on_behalf_of)
    ]
