"""The command that brings back what a collection had learned at a past moment."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engram.cli.http_client import Client, build_path, drop_unset
from engram.cli.query_commands import progress_bar, require_success
from engram.cli.service_commands import service_command
from engram.cli.terminal import LEARNT, CollectionOption, cli, say

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


@cli.command(rich_help_panel=LEARNT)
@service_command
def replay(
    client: Client,
    until: Annotated[str, typer.Option(metavar="TIME", help="The moment, with its offset: 2026-05-01T12:00:00Z.")],
    into: Annotated[
        str | None, typer.Option(metavar="NAME", help="The new collection; named by the moment by default.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="Idempotency-Key; none by default.")] = None,
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Make a collection of what another had learned at a past moment, to compare with it or to go back to.

    It holds the same passages and the verdicts that counted then, and serves without memory until it is switched
    live. The collection itself is left alone. A job makes it; this waits for the job.
    """
    body = drop_unset({"until": until, "into": into})
    accepted = client.send("POST", build_path("collections", collection, "replay"), json=body, key=key)
    with progress_bar() as progress:
        past = require_success(_follow_stages(client, accepted, progress))["result"]
    yield past
    _print(past)


def _follow_stages(client: Client, accepted: dict[str, Any], progress: "Progress") -> dict[str, Any]:
    """The job at its end, with a bar for each of its stages until then."""
    tasks: dict[str, TaskID] = {}
    job: dict[str, Any] = {}
    for job in client.follow(accepted["job_id"], accepted["collection"]):
        stage = job["stage"] or "waiting"
        if stage not in tasks:
            for earlier in tasks.values():
                progress.update(earlier, completed=progress.tasks[earlier].total)
            tasks[stage] = progress.add_task(stage)
        progress.update(tasks[stage], total=job["received"], completed=job["received"] - job["waiting"])
    return job


def _print(past: dict[str, Any]) -> None:
    say(f"{past['collection']}: {past['of']} as of {past['until']}")
    say(f"     {past['passages']} passages")
    _remark(past["passages_since"], "that came since are left out")
    _remark(past["passages_updated"], "that changed since are as they are now")
    say(f"     {past['events']} verdicts")
    _remark(past["events_restored"], "of them were revoked since")
    _remark(past["sentences_gone"], "sentences that they speak of are not there")
    say(f"     key generation {past['key_generation']}")
    if not past["key_generation_certain"]:
        say("         or another one: keys were rolled back, and it is not recorded when")
    for table, rows in past["learned"].items():
        say(f"     {rows} rows of {table}")


def _remark(count: int, text: str) -> None:
    if count:
        say(f"         {count} {text}")
