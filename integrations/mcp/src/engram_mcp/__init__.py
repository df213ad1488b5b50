"""Engram as tools of an agent, by the Model Context Protocol."""

from engram_mcp.server import server

__all__ = ["server"]
