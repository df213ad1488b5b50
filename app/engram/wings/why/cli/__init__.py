"""Commands of explanations, which ``engram`` finds by the entry point ``engram.commands``."""

from engram.wings.why.cli import gaps_command, memory_command

__all__ = ["gaps_command", "memory_command"]
