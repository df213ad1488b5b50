"""The ``engram`` command: run the service, and talk to a running one."""

import gc
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from typer.main import get_command

from app.cli import (
    access,
    ask,
    audit,
    backup,
    check_sessions,
    distribute,
    doctor,
    enough,
    evaluate,
    explain,
    facts,
    fit,
    fit_stop,
    graphs,
    importing,
    ingest,
    jobs,
    judges,
    keys,
    look,
    maintain,
    parked,
    past,
    processes,
    report,
    requests,
    serving,
    sessions,
    trajectories,
    undo,
)
from app.cli.console import cli, complain
from app.errors import EngramError

__all__ = [
    "access",
    "ask",
    "audit",
    "backup",
    "check_sessions",
    "cli",
    "command",
    "distribute",
    "doctor",
    "enough",
    "evaluate",
    "explain",
    "facts",
    "fit",
    "fit_stop",
    "graphs",
    "importing",
    "ingest",
    "jobs",
    "judges",
    "keys",
    "look",
    "main",
    "maintain",
    "parked",
    "past",
    "processes",
    "report",
    "requests",
    "serving",
    "sessions",
    "trajectories",
    "undo",
]


OBJECTS = 10_000
"""Made between two looks for garbage. Python's own 700 cost a fourth of a start, and 2% of a query."""


@cache
def command() -> Callable[[], Any]:
    """The commands put together, which takes as long as what most of them do."""
    return get_command(cli)


def main() -> None:
    """Run the command line; a failure is one line and exit code 1."""
    gc.set_threshold(OBJECTS)
    try:
        command()()
    except EngramError as error:
        complain(f"engram: {error.detail}")
        sys.exit(1)
    except OSError as error:
        if error.filename is None:
            raise
        complain(f"engram: {error.filename}: {error.strerror}")
        sys.exit(1)
    except ValueError as error:  # pydantic's class, which only those need to import who read settings
        if getattr(error, "title", None) != "Settings":
            raise
        complain(f"engram: setting {_first_mistake(error)}")
        sys.exit(1)


def _first_mistake(error: Any) -> str:
    mistake = error.errors(include_input=False, include_url=False)[0]
    name = ".".join(str(part) for part in mistake["loc"])
    variable = name if name.isupper() else f"ENGRAM_{name.upper()}"
    return f"{variable}: {mistake['msg']}"
