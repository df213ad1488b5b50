"""Command that lists sessions, the questions that took several rounds."""

from typing import Annotated, Any

import typer

from engram.cli.command_groups import session_group
from engram.cli.terminal import (
    CollectionOption,
    JsonOption,
    UrlOption,
    open_client,
    say,
    say_json,
    say_table,
)

HEADINGS = ("session", "planner", "status", "because", "rounds", "sufficiency", "begun", "question")


@session_group.command("list")
def list_sessions(
    collection: CollectionOption = "default",
    status: Annotated[
        str | None, typer.Option(help="Only those that are running, stopped, cancelled or failed.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Sessions shown.")] = 20,
    before: Annotated[str | None, typer.Option(metavar="ID", help="Only those begun before this one.")] = None,
    url: UrlOption = None,
    as_json: JsonOption = False,
) -> None:
    """List a collection's sessions, the latest first: one's own, or with scope `audit` everybody's."""
    options = {"status": status, "before": before}
    where = {"collection": collection, "limit": limit} | {key: value for key, value in options.items() if value}
    with open_client(url) as client:
        page = client.send("GET", "/sessions", params=where)
    if as_json:
        say_json(page)
        return
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
