"""The command that shows what a collection could not answer."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from engram.cli.http_client import Client, build_path
from engram.cli.service_commands import service_command
from engram.cli.terminal import ASK, CollectionOption, cli, quote_text, say

DATE_CHARACTERS = 10


@cli.command(rich_help_panel=ASK)
@service_command
def gaps(
    client: Client,
    days: Annotated[int, typer.Option(min=1, max=3650, help="Queries of so many days.")] = 30,
    limit: Annotated[int, typer.Option(min=1, max=200, help="Needs shown.")] = 20,
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Show what could not be answered: how often and since when it was asked, and what happened later."""
    path = build_path("collections", collection, "gaps")
    listing = client.send("GET", path, params={"days": days, "limit": limit})
    yield listing
    since = listing["since"][:DATE_CHARACTERS]
    say(f"{listing['queries']} queries since {since}; not answered below a sufficiency of {listing['level']:.2f}")
    for gap in listing["gaps"]:
        _say_gap(gap)


def _say_gap(gap: Mapping[str, Any]) -> None:
    times = "once" if gap["queries"] == 1 else f"{gap['queries']} times"
    people = "one caller" if gap["people"] == 1 else f"{gap['people']} callers"
    first, last = gap["first_at"][:DATE_CHARACTERS], gap["last_at"][:DATE_CHARACTERS]
    say(f"{quote_text(gap['question'])}: {times} by {people}, {first} to {last}")
    for wording in gap["wordings"]:
        say(f"     also {quote_text(wording)}")
    if gap["denials"]:
        say(f"     verdicts against its answers: {gap['denials']}")
    if gap["documents"]:
        say(f"     nearest: {', '.join(gap['documents'])}")
    later = gap["later"]
    if later["answered_at"] is not None:
        say(f"     answered {later['answered_at'][:DATE_CHARACTERS]} by query {later['query_id']}")
    if later["documents"]:
        say(f"     after these came or changed: {', '.join(later['documents'])}")
    if later["feedback_id"] is not None:
        say(f"     verdict {later['feedback_id']} names what helps")
