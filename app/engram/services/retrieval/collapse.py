"""Near-duplicates among ranked passages: which passage stands for which."""

from collections.abc import Sequence

from engram.core.ranking import duplicates
from engram.services.retrieval.graph_cache import CachedGraph
from engram.services.retrieval.query_plan import QueryPlan
from engram.storage.corpus import passages
from engram.storage.database import Reader

COMPARED_PASSAGES = 100
"""Passages that are compared at first, best first; their terms decide whose texts are read."""
SPARE_PASSAGES = 20
"""Distinct passages beyond ``top_k`` that are to be among those compared."""


def stand_ins(reader: Reader, plan: QueryPlan, graph: CachedGraph, ordered: Sequence[int]) -> dict[int, int]:
    """Duplicate -> the better passage that stands for it, among the first of those given.

    More of them are compared until ``top_k`` and some more are distinct.

    Args:
        ordered: passages, best first.
    """
    if not plan.collapses or len(ordered) < 2:
        return {}
    size = max(COMPARED_PASSAGES, 2 * plan.query.top_k)
    while True:
        stand_in_by_passage = _find_duplicates(reader, plan.collection.id, graph, ordered[:size])
        if size >= len(ordered) or size - len(stand_in_by_passage) >= plan.query.top_k + SPARE_PASSAGES:
            return stand_in_by_passage
        size *= 2


def _find_duplicates(
    reader: Reader, collection_id: int, graph: CachedGraph, ordered: Sequence[int]
) -> dict[int, int]:
    pairs = duplicates.find_similar_pairs(graph.read_terms(reader, ordered))
    if not pairs:
        return {}
    stored = passages.load_by_id(reader, collection_id, sorted({passage for pair in pairs for passage in pair}))
    texts = {passage: f"{row.title or ''}\n{row.text}" for passage, row in stored.items()}
    return duplicates.stand_ins(ordered, pairs, texts)
