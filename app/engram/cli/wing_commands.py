"""Commands about wings, the optional features."""

from dataclasses import asdict
from typing import Annotated

import typer

from engram.cli.command_groups import wing_group
from engram.cli.terminal import JsonOption, say, say_json, say_table, settings


@wing_group.command("list")
def list_wings(as_json: JsonOption = False) -> None:
    """List the installed wings: which are on, and which tables of theirs hold rows."""
    from engram.composition.container import application

    with application(settings()) as services:
        wings = services.wing_clearing.list_wings()
    if as_json:
        say_json({"wings": [asdict(wing) for wing in wings]})
        return
    rows = [(wing.name, "on" if wing.is_on else "off", ", ".join(wing.filled) or "none") for wing in wings]
    say_table([("wing", "", "tables with rows"), *rows], "<<<")


@wing_group.command("clear")
def clear_wing(
    name: Annotated[str, typer.Argument(help="The wing's name.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove all rows of a wing that is off, of every collection and tenant; the service then starts without it."""
    from engram.composition.container import application

    with application(settings()) as services:
        wing = services.wing_clearing.find(name)
        if wing.filled:
            if not yes:
                question = f"Remove all rows of the wing {name}, of every collection and tenant?"
                typer.confirm(question, abort=True, err=True)
            with services.audit_log.on_command("clear wing", name):
                services.wing_clearing.clear(name)
    if as_json:
        say_json({"wing": name, "cleared": wing.filled})
    else:
        say(f"{name}: removed all rows of {', '.join(wing.filled)}" if wing.filled else f"{name}: no rows")
