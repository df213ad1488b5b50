"""Interfaces of frontends: chat, reranking, vector stores, Dify."""
