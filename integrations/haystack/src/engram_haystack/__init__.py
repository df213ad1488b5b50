"""Engram for Haystack: a retriever, and verdicts on what it found."""

from engram_haystack.retriever import EngramRetriever, mark_helpful

__all__ = ["EngramRetriever", "mark_helpful"]
