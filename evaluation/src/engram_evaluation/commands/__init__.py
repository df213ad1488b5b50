"""Commands of the package, which ``engram`` finds by the entry point ``engram.commands``."""

from engram_evaluation.commands import (
    check_sessions_command,
    evaluate_command,
    fit_command,
    fit_stop_command,
    report_command,
    sufficiency_command,
    trajectory_commands,
)

__all__ = [
    "check_sessions_command",
    "evaluate_command",
    "fit_command",
    "fit_stop_command",
    "report_command",
    "sufficiency_command",
    "trajectory_commands",
]
