"""Plain search: passages ranked by their keys alone, without walking the graph."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from app.core import fusion, keys, ranking
from app.core import lexical as bm25
from app.providers.language import terms
from app.services.retrieval.query import Query
from app.storage.corpus import lexical
from app.storage.database import Reader
from app.storage.retrieval import hops
from app.storage.retrieval.hops import Focus, GraphLimits, Vector


@dataclass(frozen=True, slots=True)
class Search:
    """Ranks passages by the likeness of their keys to the question, dense or lexical."""

    limits: GraphLimits

    def rank(self, reader: Reader, focus: Focus, query: Query) -> list[tuple[int, float]]:
        """Passage and score of the ``top_k`` best by the query's strategy, best first.

        A score is a cosine if dense, a BM25 score if lexical, a sum of reciprocal ranks if hybrid.
        """
        match query.strategy:
            case "dense":
                return list(self._dense(reader, focus, query.top_k).items())
            case "lexical":
                return list(by_words(reader, focus, term_weights(query), query.top_k).items())
            case "hybrid":
                depth = max(fusion.DEPTH, query.top_k)
                near = self._dense(reader, focus, depth)
                matching = by_words(reader, focus, term_weights(query), depth)
                return ranking.best(fusion.reciprocal_rank_fusion([list(near), list(matching)]), query.top_k)
            case "graph":
                raise ValueError("the graph is walked, not searched")

    def _dense(self, reader: Reader, focus: Focus, limit: int) -> dict[int, float]:
        nearest = hops.nearest_passages(reader, focus, limit, self.limits)
        return {passage: key.similarity for passage, key in nearest.items()}


def term_weights(query: Query) -> dict[str, float]:
    """What the question, with its expansions, is matched by word for word: term -> weight > 0."""
    units = [Counter(terms(expansion.text)) for expansion in query.expansions]
    return bm25.expanded(Counter(terms(query.text)), units)


def by_words(reader: Reader, focus: Focus, weights: Mapping[str, float], limit: int) -> dict[int, float]:
    """The ``limit`` passages with the highest BM25 score, passage -> score, best first."""
    if not weights:
        return {}
    return lexical.search(reader, focus.collection, weights, limit, focus.metadata, evolved=focus.evolved)


def key_vector(question: Vector, units: Vector) -> Vector | None:
    """What passage keys are compared with, (d,), if the question (d,) comes with expansions (m, d), else None."""
    return keys.expanded(question, units) if len(units) else None
