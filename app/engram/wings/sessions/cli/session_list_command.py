"""Command that lists sessions, the questions that took several rounds."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from engram.cli.command_groups import session_group
from engram.cli.http_client import Client
from engram.cli.service_commands import service_command
from engram.cli.terminal import CollectionOption, say, say_table

HEADINGS = ("session", "planner", "status", "because", "rounds", "sufficiency", "begun", "question")


@session_group.command("list")
@service_command
def list_sessions(
    client: Client,
    collection: CollectionOption = "default",
    status: Annotated[
        str | None, typer.Option(help="Only those that are running, stopped, cancelled or failed.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Sessions shown.")] = 20,
    before: Annotated[str | None, typer.Option(metavar="ID", help="Only those begun before this one.")] = None,
) -> Iterator[Any]:
    """List a collection's sessions, the latest first: one's own, or with scope `audit` everybody's."""
    where = {"collection": collection, "limit": limit, "status": status, "before": before}
    page = client.send("GET", "/sessions", params=where)
    yield page
    if page["sessions"]:
        say_table([HEADINGS, *map(_cells, page["sessions"])], "<<<<>><<")
    if page["next_before"] is not None:
        status_option = f" --status {status}" if status else ""
        say(f"more: engram session list -c {collection}{status_option} --before {page['next_before']}")


def _cells(session: dict[str, Any]) -> tuple[str, ...]:
    return (
        session["session_id"],
        session["planner"],
        session["status"],
        session["stop_reason"] or "",
        str(session["rounds"]),
        "" if session["sufficiency"] is None else f"{session['sufficiency']:.2f}",
        session["created_at"][:19].replace("T", " "),
        session["question"],
    )
