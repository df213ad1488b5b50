"""The command of past moments, which ``engram`` finds by the entry point ``engram.commands``."""

from engram.wings.history.cli import replay_command

__all__ = ["replay_command"]
