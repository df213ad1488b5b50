"""Chats, relevance scores, reranked texts, and the ledger of pulls."""
