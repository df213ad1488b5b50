"""Rerankers: how much each of several texts is about a question, by a server or a model folder."""

from engram.providers.reranker.reranker_protocol import Reranker, RerankerError

__all__ = ["Reranker", "RerankerError"]
