"""Commands of passage keys, which ``engram`` finds by the entry point ``engram.commands``."""

from engram.wings.published.cli import passage_key_commands

__all__ = ["passage_key_commands"]
