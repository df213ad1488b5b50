"""Commands about wings, the optional features."""

from dataclasses import asdict
from typing import Annotated

import typer

from engram.cli.command_groups import wing_group
from engram.cli.terminal import JsonOption, say, say_json, say_table, settings


@wing_group.command("list")
def list_wings(as_json: JsonOption = False) -> None:
    """List the installed wings: which are on, and what they hold."""
    from engram.composition.container import application

    with application(settings()) as services:
        wings = services.maintenance.wing_clearing.list_wings()
    if as_json:
        say_json({"wings": [asdict(wing) for wing in wings]})
        return
    rows = [(wing.name, "on" if wing.is_on else "off", wing.held or "nothing") for wing in wings]
    say_table([("wing", "", "holds"), *rows], "<<<")


@wing_group.command("clear")
def clear_wing(
    name: Annotated[str, typer.Argument(help="The wing's name.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Remove what a wing that is off holds, of all collections and tenants. The service then starts without it."""
    from engram.composition.container import application
    from engram.services.maintenance.wing_clearing import Cleared

    with application(settings()) as services:
        wing = services.maintenance.wing_clearing.find(name)
        cleared = Cleared()
        if wing.held:
            if not yes:
                question = f"Remove {wing.held}, of every collection and tenant?"
                typer.confirm(question, abort=True, err=True)
            with services.maintenance.audit_log.on_command("clear wing", name):
                cleared = services.maintenance.wing_clearing.clear(name)
    if as_json:
        say_json({"wing": name, **asdict(cleared)})
    else:
        say(f"{name}: removed {wing.held}" if wing.held else f"{name}: holds nothing")
