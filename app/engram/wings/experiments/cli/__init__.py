"""Commands of experiments, which ``engram`` finds by the entry point ``engram.commands``."""

from engram.wings.experiments.cli import compare_command, lift_command

__all__ = ["compare_command", "lift_command"]
