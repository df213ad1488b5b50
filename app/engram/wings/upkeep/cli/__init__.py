"""Commands of upkeep, which ``engram`` finds by the entry point ``engram.commands``."""

from engram.wings.upkeep.cli import backup_commands, doctor_command, move_command

__all__ = ["backup_commands", "doctor_command", "move_command"]
