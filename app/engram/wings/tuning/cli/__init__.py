"""Commands of tuning, which ``engram`` finds by the entry point ``engram.commands``."""

from engram.wings.tuning.cli import tuning_command

__all__ = ["tuning_command"]
