"""Commands about verdicts that could not be applied: see them, and have them tried again."""

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from engram.cli.command_groups import parked_group
from engram.cli.http_client import Client, ClientError, drop_unset
from engram.cli.query_commands import print_statuses, send_one_by_one
from engram.cli.service_commands import service_command
from engram.cli.terminal import CollectionOption, say


@parked_group.command("list")
@service_command
def list_parked(
    client: Client,
    collection: CollectionOption = "default",
    after: Annotated[int, typer.Option(min=0, help="Only those after this id.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Verdicts shown.")] = 100,
) -> Iterator[Any]:
    """List verdicts that could not be applied, with what they failed with."""
    where = {"collection": collection, "status": "parked", "after": after, "limit": limit}
    page = client.send("GET", "/feedback", params=where)
    yield page
    for event in page["feedback"]:
        say(f"feedback {event['feedback_id']} of {event['judge']}, {event['received_at']}: {_line(event['error'])}")
    if page["next_after"] is not None:
        say(f"more: engram parked list -c {collection} --after {page['next_after']}")


@parked_group.command("retry")
@service_command
def retry(
    client: Client,
    events: Annotated[list[int] | None, typer.Argument(metavar="ID", help="Feedback ids.")] = None,
    judge_name: Annotated[str | None, typer.Option("--judge", help="Parked verdicts of this judge.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every parked verdict of the collection.")] = False,
    collection: CollectionOption = "default",
) -> Iterator[Any]:
    """Have parked verdicts tried again, once the cause is mended."""
    if sum((bool(events), judge_name is not None, everything)) != 1:
        raise ClientError("Say which verdicts: by their ids, or by --judge or --all.")
    done = (
        send_one_by_one(client, "POST", events, collection, "/retry")
        if events
        else client.send(
            "POST", "/feedback/retry", json=drop_unset({"judge": judge_name, "collection": collection})
        )
    )
    yield done
    if events:
        print_statuses(done)
    else:
        say(f"{collection}: {done['retried']} retried")


def _line(text: str | None) -> str:
    return " ".join((text or "").split())
