"""Passages as LlamaIndex's nodes."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from llama_index.core.callbacks import CallbackManager
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import MetadataFilters

from engram_client import AsyncEngram, Engram
from engram_client import documents as kept
from engram_client.models import FeedbackOut, QueryOut
from engram_client.requests import ContextIn, QueryIn
from engram_llamaindex.filters import to_engram


class EngramRetriever(BaseRetriever):
    """Finds nodes by ``POST /query``, the best first.

    A node's id is the passage's, its score the ranking's, its metadata those of ``engram_client.documents``. What
    stands there under ``engram`` is shown to no model.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        collection: str = "default",
        key: str | None = None,
        top_k: int = 5,
        memory: Literal["read", "off"] = "read",
        filters: MetadataFilters | Mapping[str, Any] | None = None,
        context: ContextIn | None = None,
        on_behalf_of: Sequence[str] | None = None,
        callback_manager: CallbackManager | None = None,
        verbose: bool = False,
    ) -> None:
        """
        Args:
            url: where the service is; by default ``ENGRAM_URL``, else this machine.
            collection: what is asked.
            key: the access key; by default ``ENGRAM_ACCESS_KEY``.
            top_k: nodes wanted, 1 to 100.
            memory: ``off``: as if nothing had been learned.
            filters: only passages whose metadata meet these, LlamaIndex's filters or Engram's own.
            context: adds what stands around each passage to its text: ``{"section": True}``, or
                ``{"before": 1, "after": 1}``.
            on_behalf_of: whom the retriever asks for, as ``user:ana`` and ``group:hr``; None: for the key.
            callback_manager, verbose: as for any retriever.

        Raises:
            ValueError: Engram has no such operator.
        """
        super().__init__(callback_manager=callback_manager, verbose=verbose)
        self._url, self._collection, self._key = url, collection, key
        self._options: QueryIn = {
            "top_k": top_k,
            "arm": {"memory": memory},
            "filter": to_engram(filters),
            "context": context,
            "as": None if on_behalf_of is None else list(on_behalf_of),
        }

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        question = query_bundle.query_str
        with Engram(self._url, collection=self._collection, key=self._key) as engram:
            return _nodes(engram.query(question, **self._options), self._options["as"])

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        question = query_bundle.query_str
        async with AsyncEngram(self._url, collection=self._collection, key=self._key) as engram:
            return _nodes(await engram.query(question, **self._options), self._options["as"])


def mark_helpful(engram: Engram, nodes: Iterable[NodeWithScore], *, judge: str | None = None) -> list[FeedbackOut]:
    """These nodes helped, as ``response.source_nodes`` has them; of others nothing is said.

    Raises:
        KeyError: a node is not from an ``EngramRetriever``.
        EngramError: as the client.
    """
    return kept.mark_helpful(engram, [node.node.metadata for node in nodes], judge=judge)


class PassageNode(TextNode):
    """A text node that is the same passage in the answers to all questions.

    LlamaIndex merges nodes by their hash. Metadata differ with each question, as they name the query; so the hash
    is of id and text alone.
    """

    @property
    def hash(self) -> str:
        """SHA-256 of id and text, in hexadecimal."""
        return hashlib.sha256(f"{self.node_id}\n{self.text}".encode("utf-8", "surrogatepass")).hexdigest()


def _nodes(answer: QueryOut, on_behalf_of: Sequence[str] | None) -> list[NodeWithScore]:
    return [
        NodeWithScore(
            node=PassageNode(
                id_=passage.passage_id,
                text=kept.text_with_context(passage),
                metadata=metadata,
                excluded_llm_metadata_keys=[kept.KEY],
                excluded_embed_metadata_keys=[kept.KEY],
            ),
            score=passage.score,
        )
        for passage, metadata in kept.documents(answer, on_behalf_of)
    ]
