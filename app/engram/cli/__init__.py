"""The ``engram`` command: run the service, and talk to a running one."""

import gc
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from typer.main import get_command

from engram.cli import (  # noqa: F401 - each adds its commands as it is imported
    access_commands,
    audit_command,
    distribute_command,
    document_commands,
    erasure_commands,
    ingest_commands,
    job_commands,
    judge_commands,
    maintain_command,
    parked_commands,
    process_commands,
    query_commands,
    revocation_commands,
    serving_commands,
    status_commands,
    verdict_commands,
    wing_commands,
)
from engram.cli.terminal import cli, complain
from engram.context.errors import EngramError

__all__ = ["cli", "command", "main"]

COMMANDS = "engram.commands"
"""Entry points of other packages: modules that add commands to ``engram.cli.terminal.cli`` as they are imported."""
OBJECTS = 10_000
"""Made between two looks for garbage. Python's own 700 cost a fourth of a start, and 2% of a query."""


@cache
def command() -> Callable[[], Any]:
    """Put the commands together, those of other installed packages included."""
    for point in entry_points(group=COMMANDS):
        point.load()
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
        complain(f"engram: setting {_describe_first_mistake(error)}")
        sys.exit(1)


def _describe_first_mistake(error: Any) -> str:
    mistake = error.errors(include_input=False, include_url=False)[0]
    name = ".".join(str(part) for part in mistake["loc"])
    variable = name if name.isupper() else f"ENGRAM_{name.upper()}"
    return f"{variable}: {mistake['msg']}"
