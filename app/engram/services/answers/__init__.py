"""Answers for frontends: in words, with citations, with scores, as reranked texts."""
