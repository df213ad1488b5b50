"""Commands for one machine, which ``engram`` finds by the entry point ``engram.commands``."""

from engram.wings.local.cli import sample_command, up_command

__all__ = ["sample_command", "up_command"]
