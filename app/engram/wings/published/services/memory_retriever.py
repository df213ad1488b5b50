"""Retrieval by profile ``paper``: hops weigh sentences by their memories, and these rank passages (GAM-RAG)."""

from collections.abc import Mapping, Sequence

from engram.core.ranking.propagation import Floats, ReachedSentences
from engram.storage.database import Reader
from engram.storage.retrieval import graph_hops
from engram.storage.retrieval.query_focus import Focus
from engram.wings.published.core import paper_profile
from engram.wings.published.storage import memory_hops


class MemoryRetriever:
    """A ``Retriever``. Without memory it makes the hops of the core."""

    profile = paper_profile.PAPER

    def find_linked_sentences(
        self,
        reader: Reader,
        focus: Focus,
        activation: Mapping[int, float],
        recalled: Sequence[int],
        near: Sequence[int] | None,
    ) -> ReachedSentences:
        """Make a hop, see ``graph_hops.find_linked_sentences``."""
        find = memory_hops.find_linked_sentences if focus.use_memory else graph_hops.find_linked_sentences
        return find(reader, focus, activation, recalled, near)

    def find_all_sentences(
        self, reader: Reader, focus: Focus, passages: Sequence[int] | None, recalled: Sequence[int]
    ) -> ReachedSentences:
        """Make the hop of a question without entities, see ``graph_hops.find_all_sentences``."""
        find = memory_hops.find_all_sentences if focus.use_memory else graph_hops.find_all_sentences
        return find(reader, focus, passages, recalled)

    def score_passages(
        self, similarities: Mapping[int, float], hops: Sequence[tuple[ReachedSentences, Floats]]
    ) -> dict[int, float]:
        """Score passages by their keys and the best sentences of each hop (Eqs. 7-8)."""
        return paper_profile.score_passages(similarities, hops)
