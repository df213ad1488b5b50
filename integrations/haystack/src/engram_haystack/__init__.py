"""Engram for Haystack: a retriever, and verdicts on what it found."""

from engram_haystack.retriever import EngramRetriever, helped

__all__ = ["EngramRetriever", "helped"]
