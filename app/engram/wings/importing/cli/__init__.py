"""Commands of documents, which ``engram`` finds by the entry point ``engram.commands``."""

from engram.wings.importing.cli import import_command, sync_command

__all__ = ["import_command", "sync_command"]
