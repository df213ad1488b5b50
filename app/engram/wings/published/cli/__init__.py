"""Commands of the wing, which ``engram`` finds by the entry point ``engram.commands``."""

from engram.wings.published.cli import expansion_commands, passage_key_commands

__all__ = ["expansion_commands", "passage_key_commands"]
