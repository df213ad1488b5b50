"""Commands of sessions, which ``engram`` finds by the entry point ``engram.commands``."""

from engram.wings.sessions.cli import ask_command, session_list_command

__all__ = ["ask_command", "session_list_command"]
