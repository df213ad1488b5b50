"""Commands of explanations, which ``engram`` finds by the entry point ``engram.commands``."""

from engram.wings.why.cli import memory_command

__all__ = ["memory_command"]
