"""Queries: retrieval, the episode that is kept of it, and the stored answer."""
