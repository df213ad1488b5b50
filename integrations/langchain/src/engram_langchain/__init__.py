"""Engram for LangChain: a retriever, and verdicts on what it found."""

from engram_langchain.feedback import EngramFeedback
from engram_langchain.retriever import EngramRetriever

__all__ = ["EngramFeedback", "EngramRetriever"]
