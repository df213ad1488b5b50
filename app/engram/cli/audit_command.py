"""The command that shows what administrators did."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from engram.cli.http_client import Client
from engram.cli.service_commands import service_command
from engram.cli.terminal import RUN, cli, say, say_table

HEADINGS = ("id", "when", "who", "from", "status", "what", "to what")


@cli.command(rich_help_panel=RUN)
@service_command
def audit(
    client: Client,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Entries to show.")] = 20,
    before: Annotated[int | None, typer.Option(min=1, help="Only those before this one.")] = None,
) -> Iterator[Any]:
    """List who changed, revoked or removed what, the latest first."""
    page = client.send("GET", "/audit", params={"limit": limit, "before": before})
    yield page
    if page["entries"]:
        say_table([HEADINGS, *map(_cells, page["entries"])], "><<<><<")
    if page["next_before"] is not None:
        say(f"more: engram audit --before {page['next_before']}")


def _cells(entry: dict[str, Any]) -> tuple[str, ...]:
    status = "unknown" if entry["status"] is None else str(entry["status"])
    moment = entry["begun_at"][:19].replace("T", " ")
    return (
        str(entry["id"]),
        moment,
        entry["principal"],
        entry["client"] or "",
        status,
        entry["action"],
        entry["target"],
    )
