"""Command that lists verdicts, and which of them are on texts that have changed since."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from engram.cli.http_client import Client
from engram.cli.service_commands import service_command
from engram.cli.terminal import LEARNT, CollectionOption, cli, say, say_table

HEADINGS = ("id", "judge", "status", "question", "said", "passage", "text since")


@cli.command(rich_help_panel=LEARNT)
@service_command
def verdicts(
    client: Client,
    stale: Annotated[
        bool, typer.Option("--stale", help="Only those that name a sentence that is gone or was revised since.")
    ] = False,
    after: Annotated[int, typer.Option(min=0, help="Verdicts after this id.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Verdicts to list, in order of their ids.")] = 100,
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """List verdicts, a line for each sentence that they name. Revoke one whose text has changed too much."""
    where = {"collection": collection, "stale": stale, "after": after, "limit": limit}
    page = client.send("GET", "/feedback", params=where)
    yield page
    lines = [line for verdict in page["feedback"] for line in _cells(verdict, stale=stale)]
    if lines:
        say_table([HEADINGS, *lines], "><<<<<<")
    else:
        say(f"{collection}: no such verdicts" if stale else f"{collection}: no verdicts")
    if page["next_after"] is not None:
        say(f"more: --after {page['next_after']}")


def _cells(verdict: dict[str, Any], *, stale: bool) -> Iterator[tuple[str, ...]]:
    begin = (
        str(verdict["feedback_id"]),
        verdict["judge"],
        verdict["status"],
        verdict["question"] or "",
    )
    named = [one for one in verdict["sentences"] if not stale or one["text"] is None or one["likeness"] < 1]
    if not named and not stale:
        yield (*begin, verdict["rating"] or "", "", "")
    for one in named:
        yield (*begin, one["role"], one["passage_id"] or "", _describe(one))


def _describe(sentence: dict[str, Any]) -> str:
    if sentence["text"] is None:
        return "gone, or not for you to see"
    return "" if sentence["likeness"] == 1 else f"revised, {sentence['likeness']:.0%} alike"
