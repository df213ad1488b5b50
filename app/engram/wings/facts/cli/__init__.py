"""Commands of facts, which ``engram`` finds by the entry point ``engram.commands``."""

from engram.wings.facts.cli import fact_commands, graph_commands

__all__ = ["fact_commands", "graph_commands"]
