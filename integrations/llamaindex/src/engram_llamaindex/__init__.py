"""Engram for LlamaIndex: a retriever, and verdicts on what it found."""

from engram_llamaindex.retriever import EngramRetriever, helped

__all__ = ["EngramRetriever", "helped"]
