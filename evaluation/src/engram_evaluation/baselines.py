"""Baselines of retrieval: dense keys, BM25, and both fused. None of them learns."""

import logging
import time
from collections.abc import Sequence
from typing import Protocol

from engram.core.ranking import fusion
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.harness import Harness, texts
from engram_evaluation.retrieval_metrics import DEPTH, QuestionResult


class Baseline(Protocol):
    """Ranks passages for a question."""

    def rank(self, text: str, limit: int) -> list[str]:
        """Passage ids, best first."""
        ...


class Dense:
    """Exact search over the collection's passage keys."""

    def __init__(self, harness: Harness) -> None:
        self._harness = harness

    def rank(self, text: str, limit: int) -> list[str]:
        """Passage ids, best first."""
        hits = self._harness.services.retrieval.dense.search(self._harness.scope, text, limit)
        return [passage for passage, _ in hits]


class Bm25:
    """Lucene's BM25 over title and text (bm25s: k1 1.5, b 0.75, English stop words)."""

    def __init__(self, dataset: Dataset) -> None:
        import bm25s

        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets itself to DEBUG
        self._ids = [passage["id"] for passage in dataset.passages]
        self._index = bm25s.BM25()
        self._index.index(
            bm25s.tokenize(list(texts(dataset)), stopwords="en", show_progress=False), show_progress=False
        )

    def rank(self, text: str, limit: int) -> list[str]:
        """Passage ids that share a word with the question, best first."""
        import bm25s

        words = bm25s.tokenize(text, stopwords="en", show_progress=False, return_ids=False)
        if not words[0]:
            return []
        found, scores = self._index.retrieve(words, k=min(limit, len(self._ids)), show_progress=False)
        return [self._ids[at] for at, score in zip(found[0], scores[0], strict=True) if score > 0]


class RankFusion:
    """Reciprocal-rank fusion of other rankings."""

    def __init__(self, *parts: Baseline) -> None:
        self._parts = parts

    def rank(self, text: str, limit: int) -> list[str]:
        """Passage ids, best first."""
        return reciprocal_rank_fusion([part.rank(text, fusion.DEPTH) for part in self._parts])[:limit]


def reciprocal_rank_fusion(rankings: Sequence[Sequence[str]]) -> list[str]:
    """Ids by their fused score, best first; equal ones in id order."""
    scores = fusion.reciprocal_rank_fusion(rankings)
    return sorted(scores, key=lambda passage: (-scores[passage], passage))


def observe(baseline: Baseline, question: Question) -> QuestionResult:
    """Rank for one question."""
    began = time.perf_counter()
    ranking = baseline.rank(question.text, DEPTH)
    return QuestionResult(question, ranking, ms=(time.perf_counter() - began) * 1000.0)
