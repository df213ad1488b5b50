"""Plain search: passages ranked by their keys alone, without walking the graph."""

from collections.abc import Mapping

from engram.core.ranking import fusion, passage_scores
from engram.services.retrieval.passage_key_cache import NearestLookup, find_nothing
from engram.services.retrieval.query import Strategy
from engram.storage.corpus import lexical_index
from engram.storage.database import Reader
from engram.storage.retrieval import passages_by_key
from engram.storage.retrieval.query_focus import Focus


def search(
    reader: Reader,
    focus: Focus,
    strategy: Strategy,
    terms: Mapping[str, float],
    limit: int,
    nearest_lookup: NearestLookup = find_nothing,
) -> list[tuple[int, float]]:
    """Passage and score of the ``limit`` passages whose keys are most like the question, best first.

    A score is a cosine if dense, a BM25 score if lexical, a sum of reciprocal ranks if hybrid.

    Args:
        terms: what the question is matched by word for word: term -> weight > 0.
        nearest_lookup: tells which passages are nearest, where the process knows them.
    """
    match strategy:
        case "dense":
            return list(_search_by_vector(reader, focus, limit, nearest_lookup).items())
        case "lexical":
            return list(search_by_words(reader, focus, terms, limit).items())
        case "hybrid":
            depth = max(fusion.DEPTH, limit)
            near = _search_by_vector(reader, focus, depth, nearest_lookup)
            matching = search_by_words(reader, focus, terms, depth)
            return passage_scores.select_best(fusion.reciprocal_rank_fusion([list(near), list(matching)]), limit)
        case "graph":
            raise ValueError("the graph is walked, not searched")


def search_by_words(reader: Reader, focus: Focus, terms: Mapping[str, float], limit: int) -> dict[int, float]:
    """The ``limit`` passages with the highest BM25 score, passage -> score, best first."""
    if not terms:
        return {}
    condition = focus.passage_condition if focus.is_narrowed else None
    return lexical_index.search(
        reader, focus.collection, terms, limit, condition, evolved=focus.evolved, **focus.condition_values
    )


def _search_by_vector(reader: Reader, focus: Focus, limit: int, nearest_lookup: NearestLookup) -> dict[int, float]:
    nearest = passages_by_key.find_nearest_passages(reader, focus, limit, known=nearest_lookup(limit))
    return {passage: key.similarity for passage, key in nearest.items()}
