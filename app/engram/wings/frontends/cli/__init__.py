"""Commands of pulls, which ``engram`` finds by the entry point ``engram.commands``."""

from engram.wings.frontends.cli import pull_commands

__all__ = ["pull_commands"]
