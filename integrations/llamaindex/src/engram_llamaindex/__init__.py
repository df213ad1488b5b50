"""Engram for LlamaIndex: a retriever, and verdicts on what it found."""

from engram_llamaindex.retriever import EngramRetriever, mark_helpful

__all__ = ["EngramRetriever", "mark_helpful"]
