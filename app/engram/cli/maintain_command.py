"""The command that looks after the vector indexes."""

import threading
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli.process_commands import on_stop
from engram.cli.terminal import RUN, cli, say_json, say_table, settings
from engram.context import tenancy
from engram.context.errors import UnavailableError

if TYPE_CHECKING:
    from engram.services.maintenance.index_maintenance import IndexHealth

HEADINGS = ("index", "live", "dead", "share", "MiB before", "MiB after", "seconds", "recall", "breadth", "")


@cli.command(rich_help_panel=RUN)
def maintain(
    force: Annotated[bool, typer.Option("--force", help="Build every index anew, whatever its state.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Build vector indexes anew whose entries are too often of rows that are gone; queries go on meanwhile."""
    from engram.composition.container import application

    stopping = threading.Event()
    with application(settings()) as services, tenancy.allow_all_tenants():
        on_stop(stopping.set)
        with services.maintenance.audit_log.on_command("maintain", "--force" if force else ""):
            reports = services.maintenance.indexes.run(force=force, should_stop=stopping.is_set)
    if reports is None:
        raise UnavailableError("The indexes are being maintained by another process.")
    if as_json:
        say_json({"indexes": [asdict(report) for report in reports]})
    else:
        say_table([HEADINGS, *map(_cells, reports)], "<>>>>>>>><")
    if stopping.is_set():
        raise UnavailableError("Stopped before the end; the next run clears up what was begun.")


def _cells(report: "IndexHealth") -> tuple[str, ...]:
    return (
        report.index,
        str(report.live),
        str(report.dead),
        f"{report.share:.0%}",
        f"{report.bytes_before / 2**20:.1f}",
        f"{report.bytes_after / 2**20:.1f}",
        f"{report.seconds:.1f}",
        "" if report.recall is None else f"{report.recall:.3f}",
        "" if report.breadth is None else str(report.breadth),
        "built anew" if report.healed else "left alone",
    )
